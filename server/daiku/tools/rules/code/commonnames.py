"""Names that do not identify where they are defined: members of built-in types, and words of every program."""

from __future__ import annotations

_ALL_LANGUAGES = """
get set add put has all any map run main init start stop open close read write load save send call apply next prev
name type kind value values key keys item items data info text size length count index list array object string
number bool error message result results args options opts config params props state path file files line lines id
test setup teardown handler handle callback fn func method self this cls new make create build update delete remove
clear reset copy clone merge filter find sort reverse slice splice join split trim replace match search test format
parse render print log debug warn warning info error exception exec execute process wait sleep now time date equals
equal compare hash toString valueOf default from of to as is in on off do done end begin first last min max sum abs
context request response body head tail node root parent child children push pop shift unshift concat includes
indexOf lastIndexOf startsWith endsWith forEach reduce some every flat flatMap entries assign freeze then catch
tests finally resolve reject emit once bind charAt charCodeAt substring substr padStart padEnd repeat toLowerCase
toUpperCase toFixed toISOString toJSON parseInt parseFloat isArray isNaN stringify addEventListener
removeEventListener querySelector getElementById appendChild setAttribute getAttribute setTimeout clearTimeout
setInterval clearInterval fetch require module exports constructor prototype String Number Boolean Object Array Map
Set Date Error Promise RegExp Symbol Record Partial Pick Omit Readonly Iterable Function describe it expect
beforeEach afterEach vi jest useState useEffect useMemo useCallback useRef
"""
_PYTHON = """
append extend insert sort keys values items update setdefault strip lstrip rstrip lower upper title encode decode
isinstance issubclass len range print str int float dict tuple frozenset bytes super property staticmethod classmethod
getattr setattr hasattr enumerate zip sorted reversed open repr hash iter exists mkdir unlink resolve read_text
write_text is_file is_dir group groups sub findall fullmatch dumps loads dump cls self __init__ __str__ __repr__
__enter__ __exit__ __eq__ __hash__ __len__ __iter__ __call__ __getattr__ __post_init__ ValueError TypeError KeyError
RuntimeError Exception model_dump model_validate model_copy Field patch MagicMock Mock fixture mark raises
"""
_GO = """
String Error Len Less Swap Close Read Write Reset Get Set Add Done Lock Unlock RLock RUnlock Wait Printf Println
Sprintf Errorf Fatal Fatalf Logf New Context Background make append len cap copy panic recover Is As Unwrap
ServeHTTP MarshalJSON UnmarshalJSON Marshal Unmarshal Run Helper Name Value Next Start Stop err ctx
"""
_JAVA = """
equals hashCode toString compareTo getClass wait notify notifyAll valueOf values ordinal length isEmpty contains
containsKey put putAll addAll removeIf stream collect toList iterator hasNext forEach getName setName getId setId
getValue setValue getKey getMessage getType size println printf format append builder build orElse orElseThrow
orElseGet isPresent ifPresent of asList emptyList Optional List Map String Integer Long Boolean Object Override
assertEquals assertTrue assertFalse assertThat assertNotNull when verify
"""
_RUST = """
new default clone from into unwrap expect map_err ok_or ok_or_else and_then unwrap_or unwrap_or_else unwrap_or_default
as_ref as_mut as_str to_string to_owned to_vec iter iter_mut into_iter collect push_str insert len is_empty is_some
is_none is_ok is_err fmt eq ne cmp partial_cmp hash drop deref borrow borrow_mut lock read write send recv poll next
Some None Ok Err Vec Box Arc Rc String Option Result Self println format vec assert assert_eq panic todo matches
with_capacity extend contains contains_key get_mut entry or_insert take replace cloned copied try_into try_from
"""

COMMON_NAMES = frozenset(f"{_ALL_LANGUAGES} {_PYTHON} {_GO} {_JAVA} {_RUST}".split())
"""Names of five languages in one set, because most are members of built-in types in several of them."""
