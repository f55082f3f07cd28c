//! One cell: a text made exactly as wide as its column.

/// `text` in exactly `width` columns: filled with blanks, or cut with "…" at its end.
pub fn fit(text: &str, width: usize) -> String {
    if text.len() <= width {
        return format!("{text:<width$}");
    }
    if width == 0 {
        return String::new();
    }
    format!("{}…", &text[..width - 1])
}
