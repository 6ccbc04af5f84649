//! `hikite module new`: writes a small working module file as a template.

use std::path::PathBuf;

use anyhow::Result;
use clap::Args;

use super::super::{note, print};
use super::write_new;

/// Template with issues of a public forge; `NAME` is replaced.
const START: &str = include_str!("new.yaml");

#[derive(Debug, Args)]
pub(crate) struct ModuleNewArgs {
    /// The name of the module
    #[arg(value_parser = super::name)]
    name: String,
    /// The folder to write it to
    #[arg(long, value_name = "DIR", default_value = ".")]
    dir: PathBuf,
}

impl ModuleNewArgs {
    pub(super) fn run(&self) -> Result<()> {
        let (name, dir) = (&self.name, &self.dir);
        std::fs::create_dir_all(dir)?;
        let file = if dir.as_os_str() == "." { PathBuf::new() } else { dir.clone() }.join(format!("{name}.yaml"));
        write_new(&file, &text(name))?;
        let shown = file.display().to_string();
        print(&shown);
        note(&format!(
            "1. Adapt {shown} to your service; docs/module-files.md describes the format.\n2. Run: hikite module \
             check {shown}\n3. Put the token in the config: \"providers\": {{ \"{name}\": {{ \"token\": \
             \"${{{}_TOKEN}}\" }} }}\n4. Add the folder to the config: \"modules\": {{ \"dir\": \"{}\" }}",
            name.to_uppercase(),
            dir.display(),
        ));
        Ok(())
    }
}

fn text(name: &str) -> String {
    START.replace("NAME", name)
}

#[cfg(test)]
mod tests {
    use hikite_modules::review;

    use super::*;
    use crate::services::settings;

    #[test]
    fn what_one_begins_with_is_right() {
        let review = review(&text("my_forge"), &settings(None));
        let review = review.unwrap_or_else(|faults| panic!("{faults:#?}"));
        assert_eq!(review.warnings, []);
        assert_eq!((&*review.service.name, review.service.provider()), ("my_forge", Some("my_forge")));
        assert_eq!((review.service.risks(), review.service.extras()), ([2, 1, 0], (1, 1)));
    }
}
