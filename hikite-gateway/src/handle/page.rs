//! Pages of a long result, and text search in it. Pages end at line breaks and together contain every line.

use std::fmt::Write as _;

use hikite_core::compact::TextFormat;
use hikite_core::error::{Error, ErrorKind};

use super::line::{NestedLine, ResultLines};

/// Bytes shown around a match in a line that is too long to show.
const AROUND: usize = 200;

/// Splits the lines into pages of at most `size` bytes. A page that starts inside a nested block repeats the parent
/// lines.
pub(super) fn pages(lines: &ResultLines, size: usize) -> Vec<String> {
    let size = size.max(AROUND);
    let mut pages: Vec<String> = Vec::new();
    let (mut page, mut is_fresh) = (String::new(), true);
    for line in lines.nested() {
        let mut rest = line.text;
        loop {
            if is_fresh {
                page = parents(lines, &line, size);
            }
            let room = size.saturating_sub(page.len() + 1);
            if rest.len() <= room {
                page.push_str(rest);
                page.push('\n');
                is_fresh = false;
                break;
            }
            // A line that fits on one page is not split.
            if is_fresh {
                let (now, later) = rest.split_at(boundary(rest, room));
                page.push_str(now);
                rest = later;
            }
            pages.push(std::mem::take(&mut page));
            is_fresh = true;
        }
    }
    pages.extend((!is_fresh).then_some(page));
    for page in &mut pages {
        if page.ends_with('\n') {
            page.pop();
        }
    }
    pages
}

/// Returns the last character boundary at or before `at`.
fn boundary(text: &str, at: usize) -> usize {
    (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default()
}

pub(super) fn page(pages: &[String], number: u32) -> Result<&str, Error> {
    let at = usize::try_from(number).unwrap_or(usize::MAX) - 1;
    pages.get(at).map(String::as_str).ok_or_else(|| {
        let count = pages.len();
        let are = if count == 1 { "is 1 page".to_owned() } else { format!("are {count} pages") };
        Error::new(ErrorKind::Validation, format!("There is no page {number}: there {are}."))
    })
}

/// Returns the numbered lines that contain a text, ignoring case.
pub(super) fn search(lines: &ResultLines, wanted: &str, size: usize) -> String {
    let needle = wanted.trim().to_lowercase();
    let found: Vec<NestedLine<'_>> = lines.nested().filter(|line| line.text.to_lowercase().contains(&needle)).collect();
    let mut text = format!("{} of {} lines contain `{}`", found.len(), lines.all.len(), wanted.trim());
    let mut said: Vec<usize> = Vec::new();
    for (count, line) in found.iter().enumerate() {
        let mut more = String::new();
        for head in line.parents.iter().filter(|head| !said.contains(head)) {
            more.push('\n');
            more.push_str(&lines.all[*head]);
        }
        let _ = write!(more, "\n{}: {}", line.at + 1, excerpt(line.text.trim_start(), &needle, size / 4));
        if text.len() + more.len() > size {
            let left = found.len() - count;
            let _ = write!(text, "\n[left out: {left} more lines; search for something that fewer lines contain]");
            return text;
        }
        said.clone_from(&line.parents);
        text.push_str(&more);
    }
    text
}

/// Returns the parent lines, unless they take more than half of the page.
fn parents(lines: &ResultLines, line: &NestedLine<'_>, size: usize) -> String {
    let mut text = String::new();
    if lines.form == TextFormat::Toon {
        for head in &line.parents {
            text.push_str(&lines.all[*head]);
            text.push('\n');
        }
    }
    if text.len() > size / 2 { String::new() } else { text }
}

fn excerpt(line: &str, needle: &str, most: usize) -> String {
    if line.len() <= most.max(2 * AROUND) {
        return line.to_owned();
    }
    // Lower case may change the length, so the position is approximate.
    let at = line.to_lowercase().find(needle).unwrap_or_default().min(line.len());
    let (from, to) = (at.saturating_sub(AROUND), (at + needle.len() + AROUND).min(line.len()));
    let part = &line[boundary(line, from)..boundary(line, to)];
    format!("{}{part}{}", if from > 0 { "…" } else { "" }, if to < line.len() { "…" } else { "" })
}
