"""Docstrings of people's functions, in the three usual forms."""

from __future__ import annotations

from daiku.tools.signature import read_docstring
from tests.cases import for_each

GOOGLE = """Look up the weather.

    From one service: the fast one.

    Args:
        city (str, optional): The city.
            In any language.
        days: How many (1-7): few.

        *rest: Others.

    Returns:
        nothing: at all
    """
NUMPY = """Look up the weather.

    From one service: the fast one.

    Parameters
    ----------
    city : str, optional
        The city.

        In any language.
    days, nights : int
        How many.

    Returns
    -------
    nothing
        At all.
    """
REST = """Look up the weather.

    From one service: the fast one.

    :param str city: The city.
        In any language.
    :param days: How many.
    :type days: int
    :returns: nothing: at all
    :raises ValueError: when
    """


@for_each(
    ("form", "others"),
    [
        (GOOGLE, {"days": "How many (1-7): few.", "rest": "Others."}),
        (NUMPY, {"days": "How many.", "nights": "How many."}),
        (REST, {"days": "How many."}),
    ],
)
def test_a_docstring_of_each_form_says_what_the_function_and_its_parameters_are(
    form: str, others: dict[str, str]
) -> None:
    about, parameters = read_docstring(form)
    assert about == "Look up the weather.\n\nFrom one service: the fast one."
    assert parameters == {"city": "The city. In any language.", **others}


@for_each(
    "docstring",
    [
        "",
        "Note: this is one line.",
        "Look up.\n\nParameters of the city are known.",
        "Look up.\n\nArgs:\nnothing is indented here",
        "Look up.\n\nParameters\nof the city",
        "Look up at 12:30: now.",
    ],
)
def test_what_is_in_none_of_the_forms_is_about_the_function(docstring: str) -> None:
    assert read_docstring(docstring) == (docstring, {})
