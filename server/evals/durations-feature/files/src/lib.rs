//! Jobs that run again and again.

pub mod config;
pub mod duration;
