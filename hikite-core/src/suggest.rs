//! `did you mean …`: the few known names nearest to a wrong one.

/// What is longer is no misspelling of anything.
const LONGEST: usize = 256;

/// At most three names, nearest first; none if nothing is near.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if wrong.len() > LONGEST {
        return Vec::new();
    }
    let wrong = fold(wrong);
    let limit = (wrong.chars().count() / 3).max(1);
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .filter_map(|name| {
            let folded = fold(name);
            if folded == wrong {
                return Some((0, name));
            }
            let contained = wrong.len() >= 3 && (folded.contains(&wrong) || wrong.contains(&folded));
            let distance = if contained { 1 } else { distance(&wrong, &folded, limit)? };
            Some((distance, name))
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// `did you mean `a` or `b`?`, or nothing.
pub fn did_you_mean<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let near: Vec<String> = nearest(wrong, known).into_iter().map(|name| format!("`{name}`")).collect();
    (!near.is_empty()).then(|| format!("did you mean {}?", near.join(" or ")))
}

fn fold(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | '.' | ' ')).flat_map(char::to_lowercase).collect()
}

/// Edit distance, `None` above `limit`.
fn distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, left) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, right) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(left != *right);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    Some(row[b.len()]).filter(|distance| *distance <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spelling_case_and_dashes_are_forgiven() {
        let known = ["read_file", "write_file", "list_dir"];
        assert_eq!(nearest("readFile", known), ["read_file"]);
        assert_eq!(nearest("reed_file", known)[0], "read_file");
        assert!(nearest("quux", known).is_empty());
    }
}
