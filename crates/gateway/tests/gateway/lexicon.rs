//! `[lexicon]`: verbs that the config adds, from the file to the call.

use serde_json::{Value, json};

use crate::scripted;
use crate::support::{Gateway, ends, file, text};

/// A server with unknown verbs.
fn server() -> String {
    let tool = |name: &str| json!({"name": name, "inputSchema": {"type": "object"}});
    scripted::server(
        "shed",
        &json!([tool("frobnify_lamp"), tool("zapplify_lamp")]),
    )
}

const LEXICON: &str = "[lexicon]\nread = [\"frobnify\"]\ndelete = [\"zapplify\"]\n";

#[tokio::test]
async fn an_added_verb_decides_listings_calls_and_explanations() {
    let plain = Gateway::configured(&server()).await;
    let effect = async |gateway: &Gateway, tool: &str| {
        let view = gateway.call(tool, json!({})).await;
        let word = |key: &str| view[key].as_str().unwrap().to_owned();
        (word("effect"), word("cache"))
    };
    let seen = |effect: &str, cache: &str| (effect.to_owned(), cache.to_owned());
    for tool in ["shed__frobnify_lamp", "shed__zapplify_lamp"] {
        assert_eq!(effect(&plain, tool).await, seen("mutating", "invalidated"));
    }

    let gateway = Gateway::fixed(&format!("{LEXICON}{}", server())).await;
    let (read, delete) = ("shed__frobnify_lamp", "shed__zapplify_lamp");
    assert_eq!(effect(&gateway, read).await, seen("read_only", "miss"));
    assert_eq!(effect(&gateway, read).await, seen("read_only", "hit"));
    assert_eq!(
        effect(&gateway, delete).await,
        seen("destructive", "invalidated")
    );
    assert_eq!(effect(&gateway, read).await, seen("read_only", "miss"));

    let done = ends(&["explain", delete, "--url", &gateway.admin]).await;
    let said = text(&done.stdout);
    assert!(said.contains("the name leads with `zapplify`"), "{said}");
}

#[tokio::test]
async fn annotate_reads_the_lexicon_of_its_config() {
    let config = file(format!("{LEXICON}{}", server()));
    let done = ends(&["annotate", "--config", config.path().to_str().unwrap()]).await;
    assert!(done.status.success(), "{}", text(&done.stderr));
    let levels: Vec<Value> = text(&done.stdout)
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["safetyLevel"].clone())
        .collect();
    assert_eq!(levels, ["safe", "dangerous"]);
}

#[tokio::test]
async fn a_wrong_word_or_kind_is_refused_with_line_and_key() {
    let server = server();
    for (lexicon, line, key, message) in [
        (
            "reads = [\"x\"]",
            2,
            "lexicon.reads",
            "expected one of `read`",
        ),
        (
            "read = [\n  \"frobnify\",\n  \"two words\",\n]",
            4,
            "lexicon.read.2",
            "\"two words\" is not a single word",
        ),
        ("read = \"x\"", 2, "lexicon.read", "expected an array"),
        ("read = [1]", 2, "lexicon.read", "expected a string"),
        (
            "read = [\"x\"]\ndelete = [\n\"y\",\n\"X\"]",
            5,
            "lexicon.delete.2",
            "is under `read` already",
        ),
    ] {
        let config = file(format!("[lexicon]\n{lexicon}\n{server}"));
        let path = config.path().to_str().unwrap();
        let done = ends(&["serve", "--check", "--config", path]).await;
        assert_eq!(done.status.code(), Some(2), "{lexicon}");
        let said = text(&done.stderr);
        let said = said.lines().next().unwrap();
        assert!(said.contains(&format!("{path}:{line}:")), "{line}: {said}");
        for part in [&format!("`{key}`: "), message] {
            assert!(said.contains(part), "{part}: {said}");
        }
    }
}

#[tokio::test]
async fn a_lexicon_that_would_not_be_read_is_refused() {
    let config = file(format!("rules = \"neurolink\"\n{LEXICON}{}", server()));
    let path = config.path().to_str().unwrap();
    let done = ends(&["serve", "--check", "--config", path]).await;
    assert_eq!(done.status.code(), Some(2));
    let said = text(&done.stderr);
    assert!(said.contains(&format!("{path}:2:")), "{said}");
    assert!(
        said.contains("`lexicon`: expected only together with"),
        "{said}"
    );
}
