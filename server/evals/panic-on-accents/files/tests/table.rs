use table::{fit, Table};

#[test]
fn cells_are_filled_or_cut() {
    assert_eq!(fit("ab", 4), "ab  ");
    assert_eq!(fit("abcdef", 4), "abc…");
}

#[test]
fn columns_stand_below_one_another() {
    let mut table = Table::new(&[3, 3]);
    table.row(&["a", "b"]).row(&["abcd"]);
    assert_eq!(table.lines(), ["a    b", "ab…"]);
}
