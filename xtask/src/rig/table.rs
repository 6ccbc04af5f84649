//! Result tables, as text and as JSON.

use std::fmt;

use serde_json::{Map, Value, json};

pub(crate) struct ReportTable {
    pub(crate) name: &'static str,
    pub(crate) title: String,
    pub(crate) columns: &'static [&'static str],
    pub(crate) rows: Vec<Vec<TableCell>>,
}

#[derive(Clone)]
pub(crate) enum TableCell {
    Text(String),
    /// A number and its decimals to show.
    Number(f64, usize),
}

impl ReportTable {
    pub(crate) fn json(&self) -> Value {
        let rows = self.rows.iter().map(|row| {
            let members = self.columns.iter().zip(row).map(|(column, cell)| ((*column).to_owned(), cell.json()));
            Value::Object(members.collect::<Map<_, _>>())
        });
        json!({ "title": self.title, "rows": rows.collect::<Vec<_>>() })
    }
}

impl TableCell {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    fn json(&self) -> Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::Number(number, _) => (*number).into(),
        }
    }
}

impl fmt::Display for TableCell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.pad(text),
            Self::Number(number, decimals) => f.pad(&format!("{number:.decimals$}")),
        }
    }
}

impl fmt::Display for ReportTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let widths: Vec<usize> = (0..self.columns.len())
            .map(|column| {
                let cells = self.rows.iter().map(|row| row[column].to_string().chars().count());
                cells.chain([self.columns[column].chars().count()]).max().unwrap_or(0)
            })
            .collect();
        writeln!(f, "{}", self.title)?;
        for (index, (column, width)) in self.columns.iter().zip(&widths).enumerate() {
            if index == 0 { write!(f, "  {column:<width$}")? } else { write!(f, "  {column:>width$}")? }
        }
        writeln!(f)?;
        for row in &self.rows {
            for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
                if index == 0 { write!(f, "  {cell:<width$}")? } else { write!(f, "  {cell:>width$}")? }
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Returns the value at a quantile (0 to 1); zero for no values.
pub(crate) fn percentile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "an index into far fewer values than a double counts exactly"
    )]
    let index = ((values.len().saturating_sub(1)) as f64 * share).round() as usize;
    values.get(index).copied().unwrap_or_default()
}

pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    percentile(&mut values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_percentiles_are_values() {
        let rows = vec![vec![TableCell::text("direct"), TableCell::Number(1.256, 2)]];
        let table = ReportTable { name: "t", title: "T".into(), columns: &["side", "p50"], rows };
        assert_eq!(table.to_string(), "T\n  side     p50\n  direct  1.26\n");
        assert!((percentile(&mut [3.0, 1.0, 2.0], 0.99) - 3.0).abs() < f64::EPSILON);
        assert!(median(Vec::new()).abs() < f64::EPSILON);
    }
}
