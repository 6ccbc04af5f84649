//! What of an answer a tool's author holds to be worth reading: rows and columns, picked fields, or one text.

use crate::select::Fields;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Of each row these fields. An answer that holds its rows in one member is found by itself.
    Pick(Fields),
}
