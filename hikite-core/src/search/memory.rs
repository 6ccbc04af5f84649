//! Usage memory: questions that led to a successful call of a tool speak for that tool when something alike is asked.

use super::encoder::Vector;

/// One remembered success: the question's hashes and vector, the tool, how much it still counts.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The place of the tool in the index.
    pub document: usize,
    /// What `Question::terms` told.
    pub terms: Vec<u64>,
    pub vector: Option<Vector>,
    /// One when it is new, less the longer ago it was.
    pub weight: f32,
}
