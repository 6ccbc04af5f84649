//! Break-even point: the number of modules a conversation must open before the small menu has cost as much as the
//! flat list.

use super::number::{counted, share, thousands};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BreakEven {
    /// Tokens of the flat list.
    pub flat: usize,
    /// Tokens of the default menu.
    pub menu: usize,
    /// Tokens of opening a module of median size.
    pub median: usize,
    /// Tokens of the menu and all modules.
    pub all: usize,
    /// Opened modules of median size until break-even; `None` if there are fewer modules.
    pub after_median: Option<usize>,
    /// Opened modules until break-even if the largest are opened first.
    pub after_largest: Option<usize>,
    modules: usize,
}

impl BreakEven {
    /// Computes the break-even point; `opened` is the cost of opening each module.
    pub(crate) fn new(flat: usize, menu: usize, opened: &[usize]) -> Self {
        let mut sizes = opened.to_vec();
        sizes.sort_unstable_by(|a, b| b.cmp(a));
        let median = median_of(&sizes);
        let missing = flat.saturating_sub(menu);
        let after_median = (median > 0).then(|| missing.div_ceil(median)).filter(|count| *count <= sizes.len());
        let reached = sizes.iter().scan(menu, |cost, size| {
            *cost += size;
            Some(*cost)
        });
        let after_largest = std::iter::once(menu).chain(reached).position(|cost| cost >= flat);
        let all = menu + sizes.iter().sum::<usize>();
        Self { flat, menu, median, all, after_median, after_largest, modules: sizes.len() }
    }

    /// Formats the result as a paragraph.
    pub fn words(&self) -> String {
        let (flat, menu, all) = (thousands(self.flat), thousands(self.menu), thousands(self.all));
        if self.modules == 0 {
            return "No module returned its tools, so there is nothing to compare.".into();
        }
        if self.menu >= self.flat {
            return format!(
                "All tools in one list cost {flat} tokens, the menu alone {menu}: with so few tools, show them \
                 directly (`\"surface\": \"direct\"`)."
            );
        }
        let begin = format!(
            "A conversation starts with {menu} tokens instead of {flat}. Each module that it opens adds to that, \
             one of median size {}.",
            thousands(self.median)
        );
        let largest = match self.after_largest {
            None => {
                let of = share(self.all, self.flat);
                let modules = counted(self.modules, "module");
                return format!(
                    "{begin} One that opens all of the {modules} has read {all} tokens, {of} of the flat list: it \
                     never costs as much."
                );
            }
            Some(count) => counted(count, "module"),
        };
        let median = match self.after_median {
            None => format!("with modules of median size never, as there are only {}", self.modules),
            Some(count) => format!("after {} of median size", counted(count, "module")),
        };
        format!(
            "{begin} It costs as much as the flat list after {largest} if the largest are opened first, and \
             {median}; a conversation that opens all of them reads {all} tokens. If most conversations need most \
             modules, use `\"surface\": \"direct\"`."
        )
    }
}

/// Returns the median of sorted sizes.
fn median_of(sorted: &[usize]) -> usize {
    let half = sorted.len() / 2;
    match sorted.len() {
        0 => 0,
        length if length.is_multiple_of(2) => usize::midpoint(sorted[half - 1], sorted[half]),
        _ => sorted[half],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(flat: usize, menu: usize, opened: &[usize], median: Option<usize>, largest: Option<usize>) {
        let even = BreakEven::new(flat, menu, opened);
        assert_eq!((even.after_median, even.after_largest), (median, largest), "{even:?}");
    }

    #[test]
    fn it_is_counted_from_the_menu_on() {
        check(1000, 100, &[300, 300, 300], Some(3), Some(3));
        check(1000, 100, &[299, 300, 300], Some(3), None);
        check(1000, 100, &[10, 20, 900], None, Some(1));
        check(1000, 100, &[10, 20, 899], None, Some(2));
        check(1000, 1000, &[5], Some(0), Some(0));
        check(1000, 2000, &[5], Some(0), Some(0));
        check(0, 50, &[], None, Some(0));
        check(100, 50, &[], None, None);
        check(100, 50, &[0, 0], None, None);
    }

    #[test]
    fn the_middle_of_an_even_number_lies_between_two() {
        let median = |opened: &[usize]| BreakEven::new(1, 0, opened).median;
        assert_eq!((median(&[]), median(&[7]), median(&[1, 9, 2]), median(&[1, 9, 2, 4])), (0, 7, 2, 3));
    }

    #[track_caller]
    fn says(even: &BreakEven, words: &[&str]) {
        let text = even.words();
        assert!(words.iter().all(|words| text.contains(words)), "{text}");
    }

    #[test]
    fn people_are_told_what_it_means() {
        says(&BreakEven::new(100, 50, &[]), &["nothing to compare"]);
        says(&BreakEven::new(100, 120, &[5]), &["the menu alone 120", "`\"surface\": \"direct\"`"]);
        says(
            &BreakEven::new(227_592, 2_000, &[1_000, 2_000, 3_000]),
            &["starts with 2,000 tokens instead of 227,592", "all of the 3 modules", "8,000 tokens, 3.5 %", "never"],
        );
        says(
            &BreakEven::new(1000, 100, &[500, 500, 500]),
            &["after 2 modules if the largest", "after 2 modules of median"],
        );
        says(
            &BreakEven::new(1000, 100, &[900, 1, 1]),
            &["after 1 module if", "median size never, as there are only 3"],
        );
    }
}
