//! Reports of benches without peers: each a file in the folder.

use std::fs;
use std::path::Path;

use crate::Outcome;

/// Known reports: name, heading, and command.
const KNOWN: &[(&str, &str, &str)] = &[
    (
        "stack_cost",
        "What the whole stack costs in process",
        "cargo bench --bench stack_cost",
    ),
    (
        "telemetry_cost",
        "What telemetry costs",
        "cargo bench -p callward-telemetry --features otlp --bench telemetry_cost",
    ),
];

/// Returns a section for each report, the known ones first.
pub(crate) fn read(folder: &Path) -> Outcome<Vec<String>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let part =
            |part: Option<&std::ffi::OsStr>| part.and_then(|part| part.to_str()).map(str::to_owned);
        let (Some(name), Some(kind)) = (part(path.file_stem()), part(path.extension())) else {
            continue;
        };
        if kind == "md" || kind == "txt" {
            found.push((name, kind, fs::read_to_string(&path)?));
        }
    }
    let rank = |name: &str| {
        KNOWN
            .iter()
            .position(|known| known.0 == name)
            .unwrap_or(KNOWN.len())
    };
    found.sort_by(|one, two| (rank(&one.0), &one.0).cmp(&(rank(&two.0), &two.0)));
    Ok(found
        .iter()
        .map(|(name, kind, text)| section(name, kind, text))
        .collect())
}

/// Markdown is included as it is, text as a code block.
fn section(name: &str, kind: &str, text: &str) -> String {
    let known = KNOWN.iter().find(|known| known.0 == name);
    let heading = known.map_or(name, |known| known.1);
    let command = known.map_or_else(
        || format!("cargo bench --bench {name}"),
        |known| known.2.to_owned(),
    );
    let text = text.trim_end();
    let body = if kind == "md" {
        text.to_owned()
    } else {
        format!("```text\n{text}\n```")
    };
    format!("\n## {heading}\n\n```sh\n{command}\n```\n\n{body}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_comes_with_its_command() {
        let known = section("stack_cost", "md", "| a |\n\n");
        assert!(known.contains("## What the whole stack costs in process\n"), "{known}");
        assert!(known.contains("cargo bench --bench stack_cost\n"), "{known}");
        assert!(known.ends_with("\n| a |\n"), "{known}");
        let other = section("new_bench", "txt", "a  b");
        assert!(
            other.contains("## new_bench\n") && other.contains("```text\na  b\n```"),
            "{other}"
        );
        assert!(other.contains("cargo bench --bench new_bench\n"), "{other}");
    }
}
