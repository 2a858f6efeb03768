//! Scopes as an operator names them: which writes drop which reads.

use crate::script::check;

/// The rules of most rows.
const BY_ORDER: &str = "reads:get=order:{id} writes:ship=order:{id} reads:rename=order:{id} \
                        writes:rename=order:{id}";

#[tokio::test(start_paused = true)]
async fn each_row_about_orders() {
    check(&format!(
        "
        a write to one scope invalidates its reads and wide reads
        | {BY_ORDER} get:1=1 get:2=2 list=3 ship:\"1\"=4 get:1=5 get:2=2 list=6
        a write without a rule invalidates everything
        | {BY_ORDER} get:1=1 tidy=2 get:1=3
        an idempotent write is kept while other orders are written
        | {BY_ORDER} rename:1=1 ship:2=2 rename:1=1 ship:1=3 rename:1=4 tidy=5 rename:1=6
        an unknown outcome settles its own order alone
        | {BY_ORDER} server:writes=lost ship:1=unknown get:1=2 get:1=3 get:2=4 get:2=4
        | +60s get:1=5 get:1=5
        a purge of a principal, a tool, a tag, a scope and a set
        | reads:tagged=order:{{id}} ann/tagged:1=1 bob/tagged:1=2 ann/list=3 ann/tagged:1=1
        | purge:who=bob ann/tagged:1=1 bob/tagged:1=4 ann/list=3
        | purge:tool=list ann/tagged:1=1 bob/tagged:1=4 ann/list=5
        | purge:tag=orders ann/tagged:1=6 bob/tagged:1=7 ann/list=5
        | purge:tag=order:1 ann/tagged:1=8 bob/tagged:1=9 ann/list=5
        | purge:tag=nothing ann/tagged:1=8 bob/tagged:1=9 ann/list=5
        | purge:set ann/tagged:1=10 bob/tagged:1=11 ann/list=12
        "
    ))
    .await;
    for arguments in [
        "{}",
        r#"{"id":null}"#,
        r#"{"id":{"a":1}}"#,
        r#"{"id":2,"id":1}"#,
        r#"{"id":2,"ID":1}"#,
        r#"{"Id":1}"#,
        "[not",
    ] {
        check(&format!(
            "ambiguous arguments invalidate everything: {arguments}
            | {BY_ORDER} get:1=1 ship:{arguments}=2 get:1=3"
        ))
        .await;
    }
    for (read, written) in [
        ("7", r#""7""#),
        (r#""Ab""#, r#"{"id":"_aB_"}"#),
        ("7.0", "7"),
        (r#""x""#, r#"{"id":["y","X"]}"#),
    ] {
        check(&format!(
            "textual forms of one value name one scope: {written}
            | {BY_ORDER} get:{read}=1 ship:{written}=2 get:{read}=3"
        ))
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn each_row_about_rules() {
    check(
        r#"
        a write may touch another replica set, and a read depend on one
        | state:billing=own writes:ship=*,@billing reads:list=*,@billing
        | get@billing=1 get=2 list=3 ship=4 get@billing=5 get=6 list=7 add@billing=8 get=6 list=9
        reads and writes that share an argument value meet
        | reads:get={*} writes:ship={*} get:1=1 get:2=2
        | ship:{"orders":[{"no":1}],"by":"post"}=3 get:1=4 get:2=2
        a tool with an empty write set invalidates nothing
        | writes:ship= get=1 ship=2 ship=3 get=1
        changed rules never find results of the old rules
        | reads:get=x writes:ship=x writes:pack=y ship=1 get=2 pack=3 get=2 list=4
        | reads:get=y get=5 ship=6 get=5 pack=7 get=8
        results of tools with unchanged rules stay
        | get=1 list=2 reads:get=x list=2 get=3
        "#,
    )
    .await;
    // a copy without a rule for its reads changes something else once its source was written
    for (reads, last) in [("", 3), ("reads:copy=order:{from}", 3), ("reads:copy=x", 1)] {
        check(&format!(
            r#"an idempotent write that may read more is sent again: {{reads}}
            | writes:ship=order:{{id}} writes:copy=order:{{to}} {reads}
            | copy:{{"from":1,"to":2}}=1 copy:{{"from":1,"to":2}}=1
            | ship:1=2 copy:{{"from":1,"to":2}}={last}"#
        ))
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn each_row_about_sets_and_tools_that_go() {
    check(
        "
        a tool that no caller holds is removed, and a new one finds no old results
        | get=1 get=1 retain:none tools=0 get=2
        counts of a removed set stay in the sums, and other sets keep their entries
        | hold:get get=1 get@other=2 get@other=2 list@other=3 retain:test tools=1
        | #hits=1 #misses=3 get=1
        a write in flight counts after its set was removed and came back
        | server:gate a<add written=true retain:none b<get open:2 b~bypass a=1 written=false
        | open:9 get=3 get=3
        an unsettled write outlives the removal of its set
        | next:lost add=unknown retain:none get=2 get=3 +3600s get=4 get=4
        removed tools do not find old results when they come back
        | get:1=1 purge:tool=get fill:2000 tools=209 #misses=2001 get:1=2002
        a purge of a tag reaches a definition that comes back
        | hold:untagged tagged:1=1 untagged:1=2 fill:1000 tagged:1=1 fill:2000 purge:tag=orders
        | tagged:1~miss
        ",
    )
    .await;
}
