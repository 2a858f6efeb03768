//! References in the config, and that a check prints no secret.

use crate::support::{callward, ends, text, within};

const CONFIG: &str = r#"
[audit]
path = "${env:EDGE_FOLDER}/audit.jsonl"

[telemetry]
otlp_endpoint = "http://ada:s3cr3t-otlp@collector.example:4318"

[servers.files]
command = "npx"
args = ["-y", "@acme/server", "--api-key", "s3cr3t-word", "--root=/srv", "--label", "${env:EDGE_TOKEN}",
    "GITHUB_TOKEN=s3cr3t-pair", "sk-proj-4f9Kq2LmZx81Bv7Tt0Ye"]
env = { KEY = "${file:token}", PLAIN = "s3cr3t-env" }

[servers.web]
url = "https://ada:s3cr3t-user@mcp.example/mcp?key=s3cr3t-query"
headers = { authorization = "Bearer ${file:token}", x-key = "s3cr3t-header" }
"#;

#[tokio::test]
async fn a_check_resolves_references_and_prints_no_secret() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.toml");
    std::fs::write(&path, CONFIG).unwrap();
    std::fs::write(folder.path().join("token"), "s3cr3t-file\n").unwrap();
    for more in [&[][..], &["--json"]] {
        let args = [
            &["serve", "--check", "--config", path.to_str().unwrap()],
            more,
        ]
        .concat();
        let mut command = callward(&args);
        command
            .env("EDGE_TOKEN", "hunter2")
            .env("EDGE_FOLDER", "/var/log/edge");
        let done = within("the check", command.output()).await.unwrap();
        let said = format!("{}{}", text(&done.stdout), text(&done.stderr));
        assert_eq!(done.status.code(), Some(0), "{said}");
        for secret in ["s3cr3t", "hunter2", "/var/log/edge", "4f9Kq2LmZx81Bv7Tt0Ye"] {
            assert!(!said.contains(secret), "{secret} in {said}");
        }
        for shown in [
            "--api-key [redacted] --root=/srv --label ${env:EDGE_TOKEN} GITHUB_TOKEN=[redacted]",
            "https://[redacted]@mcp.example/mcp?key=[redacted]",
            "${env:EDGE_FOLDER}/audit.jsonl",
        ] {
            assert!(said.contains(shown), "{shown} in {said}");
        }
    }
}

#[tokio::test]
async fn what_cannot_be_resolved_is_told_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.toml");
    let config = "[servers.a]\ncommand = \"x\"\nargs = [\"${HOME}\", \"${env:EDGE_ABSENT}\"]\n";
    std::fs::write(&path, config).unwrap();
    let path = path.to_str().unwrap();
    let done = ends(&["serve", "--check", "--config", path]).await;
    assert_eq!(done.status.code(), Some(2));
    let said = text(&done.stderr);
    for part in [
        "t.toml:3:9: `servers.a.args.1`: expected `${env:HOME}`",
        "t.toml:3:20: `servers.a.args.2`: the environment variable EDGE_ABSENT is not set",
    ] {
        assert!(said.contains(part), "{part} in {said}");
    }
}
