//! "Did you mean …" suggestions: the known names closest to a wrong one.

/// Longest name that is compared, in bytes.
const LONGEST: usize = 256;

/// Most edit-distance steps over all comparisons. After that, only names that differ in case or dashes, or contain one
/// another, are suggested.
const STEPS_MAX: usize = 2_000_000;

/// Returns at most three names, closest first; none if nothing is close.
pub fn nearest<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    if wrong.len() > LONGEST {
        return Vec::new();
    }
    let wrong = fold(wrong);
    let limit = (wrong.chars().count() / 3).max(1);
    let mut left = STEPS_MAX;
    let mut near: Vec<(usize, &str)> = known
        .into_iter()
        .filter(|name| name.len() <= LONGEST)
        .filter_map(|name| {
            let folded = fold(name);
            if folded == wrong {
                return Some((0, name));
            }
            let contained = wrong.len() >= 3 && (folded.contains(&wrong) || wrong.contains(&folded));
            if contained {
                return Some((1, name));
            }
            Some((distance(&wrong, &folded, limit, &mut left)?, name))
        })
        .collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Returns "Did you mean … or …?" with the closest names, if there are any.
pub fn did_you_mean<'a>(wrong: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let near: Vec<String> = nearest(wrong, known).into_iter().map(|name| format!("`{name}`")).collect();
    (!near.is_empty()).then(|| format!("Did you mean {}?", near.join(" or ")))
}

fn fold(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '_' | '-' | '.' | ' ')).flat_map(char::to_lowercase).collect()
}

/// Returns the edit distance; `None` if it exceeds `limit` or no steps are left.
fn distance(a: &str, b: &str, limit: usize, left: &mut usize) -> Option<usize> {
    let (rows, columns) = (a.chars().count(), b.chars().count());
    if rows.abs_diff(columns) > limit {
        return None;
    }
    *left = left.checked_sub(rows * columns)?;
    Some(strsim::levenshtein(a, b)).filter(|distance| *distance <= limit)
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

    #[test]
    fn a_wrong_name_among_very_many_is_found_without_comparing_all_of_them() {
        let names: Vec<String> = (0..200_000).map(|n| format!("{n:0>200}")).collect();
        let known = names.iter().map(String::as_str).chain(["the_right_one"]);
        assert_eq!(nearest("The-Right-One", known.clone()), ["the_right_one"]);
        assert_eq!(nearest(&"9".repeat(200), known), [] as [&str; 0]);
    }
}
