//! Links to the reports of benches without peers: each a file in the folder.

use std::fs;
use std::path::Path;

use crate::Outcome;

/// Known reports: name, title, and command.
const KNOWN: &[(&str, &str, &str)] = &[
    (
        "stack_cost",
        "What the whole stack costs in process",
        "cargo bench --features otlp --bench stack_cost",
    ),
    (
        "freshness",
        "Lifetimes on a day of agent traffic",
        "cargo bench --bench freshness",
    ),
];

/// Returns the section with a link to each report, the known ones first.
pub(crate) fn read(folder: &Path, folder_name: &str) -> Outcome<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name.ends_with(".md") || name.ends_with(".txt") {
            files.push(name);
        }
    }
    let rank = |file: &str| {
        let known = KNOWN.iter().position(|known| known.0 == stem(file));
        known.unwrap_or(KNOWN.len())
    };
    files.sort_by(|one, two| (rank(one), one).cmp(&(rank(two), two)));
    if files.is_empty() {
        return Ok(String::new());
    }
    let links = files.iter().map(|file| link(folder_name, file));
    Ok(format!(
        "\n## Other benches\n\n{}",
        links.collect::<String>()
    ))
}

fn stem(file: &str) -> &str {
    file.split('.').next().unwrap_or(file)
}

fn link(folder: &str, file: &str) -> String {
    let name = stem(file);
    let known = KNOWN.iter().find(|known| known.0 == name);
    let title = known.map_or(name, |known| known.1);
    let command = known.map_or_else(
        || format!("cargo bench --bench {name}"),
        |known| known.2.to_owned(),
    );
    format!("- [{title}]({folder}/{file}): `{command}`\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_is_linked_with_its_command() {
        assert_eq!(
            link("benchmarks", "stack_cost.md"),
            "- [What the whole stack costs in process](benchmarks/stack_cost.md): \
             `cargo bench --features otlp --bench stack_cost`\n"
        );
        assert_eq!(
            link("benchmarks", "new_bench.txt"),
            "- [new_bench](benchmarks/new_bench.txt): `cargo bench --bench new_bench`\n"
        );
    }
}
