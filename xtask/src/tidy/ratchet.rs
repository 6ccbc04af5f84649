//! Exceptions from a limit, each with the figure it has reached. A figure may only fall: one that rises fails, and so
//! does one that fell, until its entry is lowered or removed.

use std::collections::BTreeMap;

use super::TidyFinding;

/// A limit on figures that are counted per key, such as methods per type.
pub(super) struct Ratchet<'a> {
    /// The file that holds the table of exceptions.
    pub(super) table: &'a str,
    /// The noun of the figure, as in "41 methods".
    pub(super) unit: &'a str,
    pub(super) max: usize,
    pub(super) exceptions: &'a [(&'a str, usize)],
}

impl Ratchet<'_> {
    pub(super) fn check(&self, figures: &BTreeMap<String, usize>) -> Vec<TidyFinding> {
        let Self { table, unit, max, exceptions } = self;
        let allowed = |key: &str| exceptions.iter().find(|(excepted, _)| *excepted == key).map(|(_, figure)| *figure);
        let over = figures.iter().filter(|(_, figure)| *figure > max).filter_map(|(key, figure)| match allowed(key) {
            None => Some(TidyFinding::file(key, format!("{figure} {unit}; at most {max} are allowed"))),
            Some(before) if *figure > before => Some(TidyFinding::file(
                key,
                format!("{figure} {unit}; there were {before}, and they may only get fewer"),
            )),
            Some(before) if *figure < before => Some(TidyFinding::file(
                table,
                format!("`{key}` has {figure} {unit}; lower its exception from {before}"),
            )),
            Some(_) => None,
        });
        let figure_of = |key: &str| figures.get(key).copied().unwrap_or_default();
        let unneeded = exceptions.iter().filter(|(key, _)| figure_of(key) <= *max).map(|(key, _)| {
            let message = format!("`{key}` has {} {unit}; remove its exception", figure_of(key));
            TidyFinding::file(table, message)
        });
        over.chain(unneeded).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn finds(figure: usize, exceptions: &[(&str, usize)], expected: Option<&str>) {
        let ratchet = Ratchet { table: "table.rs", unit: "methods", max: 40, exceptions };
        let findings = ratchet.check(&BTreeMap::from([("crate::Type".to_owned(), figure)]));
        assert_eq!(findings.iter().map(ToString::to_string).collect::<Vec<_>>(), Vec::from_iter(expected));
    }

    #[test]
    fn exceptions_only_shrink() {
        let exception = [("crate::Type", 50)];
        finds(40, &[], None);
        finds(50, &exception, None);
        finds(41, &[], Some("crate::Type: 41 methods; at most 40 are allowed"));
        finds(51, &exception, Some("crate::Type: 51 methods; there were 50, and they may only get fewer"));
        finds(49, &exception, Some("table.rs: `crate::Type` has 49 methods; lower its exception from 50"));
        finds(40, &exception, Some("table.rs: `crate::Type` has 40 methods; remove its exception"));
    }
}
