//! `tollgate demo`: every row says what the tour promises.

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
        "8 calls with Tollgate, 72 without",
        "tollgate serve",
    ] {
        assert!(said.contains(part), "{part} in\n{said}");
    }
}
