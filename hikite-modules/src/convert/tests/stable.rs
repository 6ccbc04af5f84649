//! Tests that a second round trip changes nothing, so that Markdown does not drift when it is read and written
//! repeatedly.

use proptest::prelude::*;

use super::super::markdown::write;
use super::super::{adf, notion, storage};
use super::generate::tree;

fn check(text: &str, round: impl Fn(&str) -> String) -> Result<(), TestCaseError> {
    let first = round(text);
    prop_assert_eq!(round(&first), first, "{}", text);
    Ok(())
}

proptest! {
    #![proptest_config(super::cases(500))]

    #[test]
    fn a_second_round_through_documents_changes_nothing(tree in tree()) {
        check(&write(&tree), |text| adf::to_markdown(&adf::from_markdown(text)))?;
    }

    #[test]
    fn a_second_round_through_storage_changes_nothing(tree in tree()) {
        check(&write(&tree), |text| storage::to_markdown(&storage::from_markdown(text)))?;
    }

    #[test]
    fn a_second_round_through_blocks_changes_nothing(tree in tree()) {
        check(&write(&tree), |text| notion::to_markdown(&notion::from_markdown(text)))?;
    }
}
