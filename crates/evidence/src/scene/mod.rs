//! What a figure consists of: panels of lines, or maps of squares, with names and styles.

pub mod family;
pub mod figure;
pub mod line;
pub mod map;
