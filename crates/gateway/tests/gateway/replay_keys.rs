//! `callward replay --keys`: what is reported, as what, and what of a file is refused.

use serde_json::{Value, json};

use crate::support::{ends, fed, file, text};

/// Four keys, the first of them often: with space for two, what is new drives it out or does not.
const KEYS: &str = "a\nb\na\nc\na\nd\nb\na\n";

async fn replayed(args: &[&str]) -> Vec<Value> {
    let args = [&["replay", "--keys", "-", "--json"], args].concat();
    let done = fed(&args, KEYS.as_bytes()).await;
    assert_eq!(text(&done.stderr), "");
    assert!(done.status.success());
    let lines = text(&done.stdout).lines();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test]
async fn a_table_tells_the_hit_rates_and_how_ours_compares() {
    let keys = file(KEYS);
    let path = keys.path().to_str().unwrap();
    let args = ["replay", "--keys", path, "--policy", "lru,callward,belady"];
    let done = ends(&[&args[..], &["--capacity", "4"]].concat()).await;
    assert_eq!(
        text(&done.stdout),
        "\
8 requests for 4 keys: hit rate in per cent
capacity  lru    callward  belady  to lru  to belady
4         50.00  50.00     50.00   +0.00   +0.00
against lru: +0.00 points on average, +0.00 at worst (capacity 4)
against belady: +0.00 points on average, +0.00 at worst (capacity 4)
"
    );
    assert_eq!(text(&done.stderr), "");
    assert!(done.status.success());
}

#[tokio::test]
async fn json_has_a_line_for_each_policy_at_each_capacity_and_a_sum() {
    let lines = replayed(&[
        "--capacity",
        "4,2",
        "--policy",
        "lru",
        "--policy",
        "callward",
    ])
    .await;
    assert_eq!(lines.len(), 5);
    assert_eq!(
        lines[0],
        json!({
            "policy": "lru", "unit": "entries", "capacity": 2,
            "requests": 8, "hits": 2, "hit_rate": 0.25, "most_kept": 2,
        })
    );
    assert_eq!(lines[3]["policy"], "callward");
    assert_eq!(lines[3]["hits"], 4);
    let sum = &lines[4]["summary"];
    assert_eq!((&sum["requests"], &sum["distinct"]), (&json!(8), &json!(4)));
    assert_eq!(sum["keys"], "-");
    assert!(sum["to_lru"]["mean"].is_number(), "{sum}");
    assert_eq!(sum.get("to_belady"), None);
}

#[tokio::test]
async fn all_policies_are_tried_when_none_is_named() {
    let lines = replayed(&["--capacity", "2"]).await;
    let names: Vec<_> = lines
        .iter()
        .filter_map(|line| line["policy"].as_str())
        .collect();
    assert_eq!(
        names,
        [
            "none",
            "fifo",
            "lru",
            "lfu",
            "s3-fifo",
            "w-tinylfu",
            "callward",
            "belady",
            "ttl"
        ]
    );
    // the capacities follow from the number of keys: half of four
    assert_eq!(replayed(&[]).await.len(), lines.len());
    assert_eq!(replayed(&[]).await[0]["capacity"], 2);
}

#[tokio::test]
async fn sizes_count_where_the_capacity_is_in_bytes() {
    let keys = "small 10\nlarge 100000\nsmall 10\nlarge 100000\n";
    let args = ["replay", "--keys", "-", "--json", "--capacity", "10kB"];
    let done = fed(&args, keys.as_bytes()).await;
    assert!(done.status.success(), "{}", text(&done.stderr));
    let lines: Vec<Value> = text(&done.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    for line in &lines {
        let want = match line["policy"].as_str() {
            Some("none") => 0,
            Some("ttl") => 2,
            Some("belady") => panic!("an optimum with sizes: {line}"),
            Some(_) => 1,
            None => continue,
        };
        assert_eq!(line["hits"], want, "{line}");
        assert_eq!(line["unit"], "bytes");
    }
    assert_eq!(lines.len(), 9);
}

#[tokio::test]
async fn an_invalid_recording_is_an_error_with_its_line() {
    for (keys, args, code, want) in [
        ("a\nb c\n", &[][..], 1, "standard input:2: the size is not"),
        ("a\n", &["--capacity", "1MiB"], 2, "have no sizes"),
        ("a 1\n", &["--capacity", "1,1MiB"], 2, "all in bytes"),
        (
            "a 1\n",
            &["--capacity", "1MiB", "--policy", "belady"],
            2,
            "--policy belady",
        ),
        ("a\n", &["--capacity=-1"], 2, "expected a number"),
        ("a\n", &["--capacity", "lots"], 2, "expected a number"),
        (
            "a\n",
            &["--policy", "best"],
            2,
            "expected one of none, fifo",
        ),
    ] {
        let args = [&["replay", "--keys", "-"], args].concat();
        let done = fed(&args, keys.as_bytes()).await;
        assert_eq!(done.status.code(), Some(code), "{args:?}");
        assert!(text(&done.stderr).contains(want), "{args:?}: {done:?}");
        assert_eq!(text(&done.stdout), "", "{args:?}");
    }
}

#[tokio::test]
async fn a_file_that_is_not_there_is_named() {
    let done = ends(&["replay", "--keys", "/no/such/keys"]).await;
    assert_eq!(done.status.code(), Some(1));
    assert!(text(&done.stderr).contains("/no/such/keys: "), "{done:?}");
    let done = ends(&["replay"]).await;
    assert_eq!(done.status.code(), Some(2));
    assert!(text(&done.stderr).contains("--keys"), "{done:?}");
}
