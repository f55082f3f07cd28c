//! Tables for terminals.

mod cell;
mod table;

pub use cell::fit;
pub use table::Table;
