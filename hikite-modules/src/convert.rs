//! Converters between Markdown and the document formats of services: Notion blocks, the Atlassian Document Format,
//! Confluence storage format and HTML. All are pure functions: no file, no socket, no clock. No text is lost, and no
//! input is rejected, however deep or broken.

pub mod adf;
pub mod html;
mod markdown;
mod markup;
pub mod notion;
pub mod storage;

#[cfg(test)]
mod tests;
