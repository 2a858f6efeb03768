//! `callward demo`: every row says what the tour promises.

use serde_json::{Value, json};

use crate::support::{ends, text};

#[tokio::test]
async fn the_tour_shows_what_it_promises() {
    let done = ends(&["demo", "--json"]).await;
    assert!(done.status.success(), "{}", text(&done.stderr));
    let lines: Vec<Value> = text(&done.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let [rows @ .., sum] = &lines[..] else {
        panic!("no rows");
    };
    let expected = [
        ("get_order", json!({"miss": 1}), 1, 1, "status paid"),
        ("get_order", json!({"hit": 1}), 0, 1, "status paid"),
        (
            "sales_report",
            json!({"joined": 63, "miss": 1}),
            1,
            64,
            "ok",
        ),
        (
            "set_status",
            json!({"invalidated": 1}),
            1,
            1,
            "status shipped",
        ),
        ("set_status", json!({"hit": 1}), 0, 1, "status shipped"),
        ("get_order", json!({"miss": 1}), 1, 1, "status shipped"),
        ("delete_order", json!({"invalidated": 1}), 1, 1, "deleted 3"),
        ("get_exchange_rate", json!({"miss": 1}), 2, 1, "rate 1.08"),
        ("charge_card", json!({"invalidated": 1}), 1, 1, ""),
    ];
    assert_eq!(rows.len(), expected.len());
    for (row, (tool, cache, with, without, answer)) in rows.iter().zip(&expected) {
        assert_eq!(row["tool"], *tool);
        assert_eq!(row["cache"], *cache, "{row}");
        assert_eq!(row["executions"], *with, "{row}");
        assert_eq!(row["executions_without"], *without, "{row}");
        assert_eq!(
            row["attempts"], *with,
            "each attempt is one execution: {row}"
        );
        if !answer.is_empty() {
            assert_eq!(row["answer"], *answer, "{row}");
        }
    }
    let of = |tool: &str| rows.iter().find(|row| row["tool"] == tool).unwrap();
    assert_eq!(of("delete_order")["servers"], json!(["orders-primary"]));
    assert_eq!(of("delete_order")["effect"], "destructive");
    assert_eq!(
        of("set_status")["servers"],
        json!(["orders-primary"]),
        "category caching first"
    );
    assert!(
        of("charge_card")["answer"]
            .as_str()
            .unwrap()
            .starts_with("error")
    );
    assert!(
        of("get_exchange_rate")["answer_without"]
            .as_str()
            .unwrap()
            .starts_with("error")
    );
    assert_eq!(*sum, json!({"executions": 8, "executions_without": 72}));
}

#[tokio::test]
async fn the_table_ends_with_what_to_try_next() {
    let done = ends(&["demo"]).await;
    let said = text(&done.stdout);
    for part in [
        "63 joined, 1 miss",
        "8 calls with Callward, 72 without",
        "callward serve",
    ] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
}

#[tokio::test]
async fn under_chaos_naive_retries_run_things_twice_and_the_stack_does_not() {
    for seed in ["1", "2"] {
        let args = [
            "demo", "--chaos", "--json", "--calls", "4000", "--seed", seed,
        ];
        let done = ends(&args).await;
        assert!(done.status.success(), "{}", text(&done.stderr));
        let lines: Vec<Value> = text(&done.stdout)
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let [rows @ .., sum] = &lines[..] else {
            panic!("no rows");
        };
        let tools: Vec<_> = rows
            .iter()
            .map(|row| row["tool"].as_str().unwrap())
            .collect();
        assert_eq!(
            tools,
            [
                "get_order",
                "set_status",
                "add_note",
                "charge_card",
                "delete_order"
            ]
        );
        assert_eq!(sum["calls"], 4000);
        assert_eq!(sum["callward"]["duplicates"], 0, "{sum}");
        for side in ["naive", "callward"] {
            let count = |what: &str| sum[side][what].as_u64().unwrap();
            assert_eq!(
                count("done") + count("errors") + count("unknown"),
                4000,
                "{sum}"
            );
            for row in rows.iter().filter(|row| row["effect"] != "read_only") {
                let executions = row[side]["executions"].as_u64().unwrap();
                assert!(executions >= row[side]["done"].as_u64().unwrap(), "{row}");
            }
        }
        // the chaos was there, and is reported
        assert!(sum["naive"]["duplicates"].as_u64().unwrap() > 20, "{sum}");
        assert!(sum["callward"]["unknown"].as_u64().unwrap() > 20, "{sum}");
    }
}

#[tokio::test]
async fn the_table_of_chaos_says_what_it_means() {
    let done = ends(&["demo", "--chaos", "--calls", "500"]).await;
    let said = text(&done.stdout);
    for part in ["duplicates", "charge_card", "and 0 with Callward"] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
    // what belongs to chaos alone is not taken without it
    assert!(!ends(&["demo", "--seed", "1"]).await.status.success());
}
