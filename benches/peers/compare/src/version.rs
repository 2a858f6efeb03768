//! Which release is measured: what the files say that pin it.

use std::fs;
use std::process::Command;

use crate::peer::Places;

/// The version of a package; nothing where it is pinned nowhere.
pub(crate) fn of(package: &str, places: &Places) -> Option<String> {
    let read = |file: &str| fs::read_to_string(places.sources.join(file)).unwrap_or_default();
    match package {
        "callward" => {
            let output = Command::new(&places.callward)
                .arg("--version")
                .output()
                .ok()?;
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            Some(text.split_whitespace().last()?.to_owned())
        }
        "fastmcp" => in_requirements(&read("fastmcp/requirements.txt"), package),
        "@juspay/neurolink" => in_package(&read("neurolink/package.json"), package),
        _ => in_lock(&read("Cargo.lock"), package),
    }
}

fn in_lock(lock: &str, package: &str) -> Option<String> {
    let (_, rest) = lock.split_once(&format!("name = \"{package}\"\nversion = \""))?;
    Some(rest.split_once('"')?.0.to_owned())
}

fn in_requirements(lines: &str, package: &str) -> Option<String> {
    let line = lines
        .lines()
        .find_map(|line| line.strip_prefix(package)?.strip_prefix("=="));
    Some(line?.trim().to_owned())
}

fn in_package(json: &str, package: &str) -> Option<String> {
    let json: serde_json::Value = serde_json::from_str(json).ok()?;
    Some(json["dependencies"][package].as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_says_it_in_its_way() {
        let lock = "[[package]]\nname = \"rmcp-macros\"\nversion = \"1\"\n\n[[package]]\nname = \"rmcp\"\nversion = \"3.9.0\"\nsource";
        assert_eq!(in_lock(lock, "rmcp").as_deref(), Some("3.9.0"));
        let lines = "fastmcp-slim==4\nfastmcp==4.1.2\n";
        assert_eq!(in_requirements(lines, "fastmcp").as_deref(), Some("4.1.2"));
        let json = "{\"dependencies\": {\"@a/b\": \"9.37.0\"}}";
        assert_eq!(in_package(json, "@a/b").as_deref(), Some("9.37.0"));
        assert_eq!(in_package(json, "react"), None);
    }
}
