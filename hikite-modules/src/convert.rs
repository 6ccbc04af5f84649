//! What services keep their texts in, as Markdown and back: Notion blocks, the Atlassian Document Format, the
//! storage format of Confluence and HTML. Everything here is a function of its input: no file, no socket, no
//! clock. No text is lost on the way, and no input, however deep or broken, is refused.

pub mod adf;
pub mod html;
mod markdown;
mod markup;
pub mod notion;
pub mod storage;

#[cfg(test)]
mod tests;
