use table::{fit, Table};

fn width(text: &str) -> usize {
    text.chars()
        .map(|sign| match sign as u32 {
            0x0300..=0x036F => 0,
            0x1100..=0x115F | 0x2E80..=0xA4CF | 0xAC00..=0xD7A3 | 0xF900..=0xFAFF => 2,
            0xFE30..=0xFE6F | 0xFF00..=0xFF60 | 0xFFE0..=0xFFE6 => 2,
            _ => 1,
        })
        .sum()
}

#[test]
fn every_text_fits_every_width() {
    for text in ["", "Zoë Müller", "佐藤花子", "a佐b藤c", "e\u{301}e\u{301}e\u{301}", "한국어", "ＡＢＣ", "…", "x…佐", "plain text"] {
        for columns in 0..14 {
            let cell = fit(text, columns);
            assert_eq!(width(&cell), columns, "{text} in {columns}: {cell:?}");
            if width(text) <= columns {
                assert!(cell.starts_with(text) && cell[text.len()..].chars().all(|c| c == ' '));
            } else if columns > 0 {
                assert!(cell.trim_end().ends_with('…'), "{cell:?}");
            }
        }
    }
}

#[test]
fn as_much_is_shown_as_fits() {
    assert_eq!(fit("Zoë Müller", 5), "Zoë …");
    assert_eq!(fit("佐藤花子", 5), "佐藤…");
    assert_eq!(fit("佐藤花子", 4), "佐… ");
    assert_eq!(fit("佐藤花子", 1), "…");
    assert_eq!(fit("e\u{301}e\u{301}e\u{301}", 2), "e\u{301}…");
}

#[test]
fn the_whole_table() {
    let mut table = Table::new(&[6, 4]);
    table.row(&["佐藤花子", "東京"]).row(&["Zoë", "Zürich"]);
    assert_eq!(table.lines(), ["佐藤…   東京", "Zoë     Zür…"]);
}
