//! A table for terminals and Markdown. The first column holds names, all others numbers.

use std::fmt::Write;

#[derive(Clone, Debug)]
pub(crate) struct MeasureTable {
    head: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl MeasureTable {
    pub(crate) fn new(head: &[&'static str]) -> Self {
        Self { head: head.to_vec(), rows: Vec::new() }
    }

    /// Adds a row, with as many cells as the head has.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        self.rows.push(cells);
    }

    /// Formats aligned columns without borders.
    pub(crate) fn plain(&self) -> String {
        let head: Vec<String> = self.head.iter().map(|&word| word.to_owned()).collect();
        let lines: Vec<&Vec<String>> = std::iter::once(&head).chain(&self.rows).collect();
        let width = |column: usize| {
            lines.iter().filter_map(|cells| cells.get(column)).map(|cell| columns(cell)).max().unwrap_or(0)
        };
        let widths: Vec<usize> = (0..head.len()).map(width).collect();
        let lines = lines.iter().map(|cells| {
            let mut line = String::new();
            for (at, (cell, width)) in cells.iter().zip(&widths).enumerate() {
                let blanks = " ".repeat(width - columns(cell));
                let _ = if at == 0 { write!(line, "{cell}{blanks}") } else { write!(line, "  {blanks}{cell}") };
            }
            line.trim_end().to_owned()
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &mut dyn Iterator<Item = String>| {
            format!("| {} |", cells.map(|cell| escaped(&cell)).collect::<Vec<_>>().join(" | "))
        };
        let head = line(&mut self.head.iter().map(|&word| word.to_owned()));
        let marks = format!("|---|{}", "---:|".repeat(self.head.len().saturating_sub(1)));
        let rows = self.rows.iter().map(|cells| line(&mut cells.iter().cloned()));
        [head, marks].into_iter().chain(rows).collect::<Vec<_>>().join("\n")
    }
}

/// Escapes a cell for Markdown; names of servers and tools may contain anything.
fn escaped(cell: &str) -> String {
    cell.replace('\\', "\\\\").replace('|', "\\|").replace('<', "&lt;").replace(['\n', '\r'], " ")
}

/// Returns the display width: East Asian wide characters take two columns.
fn columns(text: &str) -> usize {
    text.chars().map(|letter| if is_wide(letter) { 2 } else { 1 }).sum()
}

fn is_wide(letter: char) -> bool {
    matches!(letter, '\u{1100}'..='\u{115f}' | '\u{2e80}'..='\u{a4cf}' | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ff60}' | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1f64f}' | '\u{20000}'..='\u{3fffd}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> MeasureTable {
        let mut table = MeasureTable::new(&["module", "tools", "flat"]);
        table.row(vec!["git".into(), "12".into(), "1,500".into()]);
        table.row(vec!["引手|<x>".into(), "3".into(), "90".into()]);
        table
    }

    #[test]
    fn figures_stand_under_each_other() {
        assert_eq!(
            table().plain(),
            "module    tools   flat\ngit          12  1,500\n引手|<x>      3     90",
            "wide letters take two places"
        );
    }

    #[test]
    fn markdown_holds_whatever_a_name_holds() {
        let lines = ["| module | tools | flat |", "|---|---:|---:|", "| git | 12 | 1,500 |"];
        assert_eq!(table().markdown(), format!("{}\n| 引手\\|&lt;x> | 3 | 90 |", lines.join("\n")));
    }
}
