//! Rows of cells.

use crate::cell::fit;

/// A table with columns of fixed widths.
pub struct Table {
    widths: Vec<usize>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new(widths: &[usize]) -> Self {
        Table { widths: widths.to_vec(), rows: Vec::new() }
    }

    /// Add a row; missing cells are empty, too many are left out.
    pub fn row(&mut self, cells: &[&str]) -> &mut Self {
        self.rows.push(cells.iter().map(|cell| cell.to_string()).collect());
        self
    }

    /// The table as lines; blanks at the end of a line are left out.
    pub fn lines(&self) -> Vec<String> {
        self.rows
            .iter()
            .map(|row| {
                let cells: Vec<String> = self
                    .widths
                    .iter()
                    .enumerate()
                    .map(|(at, &width)| fit(row.get(at).map_or("", |cell| cell), width))
                    .collect();
                cells.join("  ").trim_end().to_string()
            })
            .collect()
    }
}
