//! What an answer says of its own freshness.

use crate::script::check;

#[tokio::test(start_paused = true)]
async fn a_stated_lifetime_counts_up_to_the_plans() {
    for (members, seconds) in [
        ("{}", 300),
        (r#"{"ttlMs":60000,"cacheScope":"public"}"#, 60),
        (r#"{"ttlMs":5000}"#, 5),
        (r#"{"_meta":{"ttlMs":9000000}}"#, 300),
        (r#"{"_meta":{"io.callward/cache":{"age_ms":100000}}}"#, 200),
        (r#"{"ttlMs":"5000"}"#, 300),
    ] {
        check(&format!(
            "{members}\n| server:reads={members} get=1 +{seconds}s-1ns get=1 +1ns get=2"
        ))
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_no_store_answer_is_not_shared_in_flight() {
    for members in [
        r#"{"ttlMs":0}"#,
        r#"{"_meta":{"cache_hint":"no-cache"}}"#,
        r#"{"_meta":{"io.callward/cache":{"status":"stale"}}}"#,
    ] {
        check(&format!(
            "{members}
            | server:reads={members} server:takes=1s a<get b<get a=1 b=2
            | #refusals.no_store=2 #stored=0"
        ))
        .await;
    }
}

#[tokio::test(start_paused = true)]
async fn each_row_about_statements() {
    check(
        r#"
        a private answer is not shared between principals
        | conf:partition=shared server:reads={"cacheScope":"private"} ann/get=1 bob/get=2 ann/get=3
        each principal keeps its own private answer
        | server:reads={"cacheScope":"private"} ann/get=1 bob/get=2 ann/get=1
        what is called public is not given to others on that account
        | server:reads={"cacheScope":"public"} ann/get=1 bob/get=2 ann/get=1
        a write's stated lifetime shortens the plan's
        | server:writes={"ttlMs":2000} set=1 +1s set=1 +1s set=2
        a write may forbid to keep its answer
        | server:writes={"ttlMs":0} set=1 set=2
        "#,
    )
    .await;
}
