//! The documented files and examples are read as they are written.

use super::*;

#[test]
fn the_documented_files_are_accepted() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples");
    let mut seen = 0;
    for entry in std::fs::read_dir(examples).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|extension| extension == "toml")
        {
            Config::load(&path).unwrap_or_else(|error| panic!("{error}"));
            seen += 1;
        }
    }
    assert!(seen >= 3, "only {seen} examples found");
}

#[test]
fn the_pages_about_the_config_show_files_that_are_accepted() {
    for page in ["config.md", "cache.md"] {
        shows_files_that_are_accepted(page);
    }
}

fn shows_files_that_are_accepted(page: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(page);
    let text = std::fs::read_to_string(page).unwrap();
    let blocks: Vec<_> = text
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(!blocks.is_empty());
    for block in blocks {
        Config::parse(Path::new("t.toml"), block)
            .unwrap_or_else(|error| panic!("{error}\n{block}"));
    }
}
