//! Serving the last answer because the server fails.

use callward_core::ErrorKind;

use crate::script::check;

#[tokio::test(start_paused = true)]
async fn each_row_about_stale_if_error() {
    check(
        r#"
        it serves the last answer with a mark, and sends each call first
        | conf:stale_if_error=600s get=1 server:reads=breaker_open +300s get=1
        | mark:status=stale mark:age_ms=300000 mark:reason=breaker_open
        | #misses=2 #rescued=1 #stale=0 get~stale runs=3
        it does not cover tool errors
        | conf:stale_if_error=600s get=1 server:reads=error +300s get=no
        it is off by default
        | get=1 server:reads=timeout +300s get=failed
        it ends with its window
        | conf:stale_if_error=600s get=1 server:reads=timeout +900s-1ns get=1 +1ns get=failed
        it serves no answer from before a write
        | conf:stale_if_error=600s get=1 server:reads=timeout +300s add=2 get=failed
        a write during the failing read removes the stale answer
        | conf:stale_if_error=600s get=1 server:reads=timeout +300s server:takes=10s a<get
        | server:takes=0s add=3 a=failed #rescued=0
        no answer older than one already served is served
        | conf:stale_if_error=600s get=1 +300s next:{"ttlMs":0},timeout get=2 get=failed
        it does not cover a failing refresh, but a call beyond its window
        | conf:stale_if_error=600s conf:stale_while_revalidate=60s get=1 server:reads=timeout
        | +300s get=1 mark:reason=revalidating settle #refreshes=0 #failed_refreshes=1 #rescued=0
        | +60s get=1 mark:reason=timeout #rescued=1
        it keeps principals apart
        | conf:stale_if_error=600s ann/get=1 server:reads=timeout +300s bob/get=failed
        it covers no write
        | conf:stale_if_error=600s set=1 server:writes=connect_failed +5s set=failed
        "#,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn stale_if_error_covers_only_server_failures() {
    let covered = [
        "breaker_open connect_failed connection_lost no_eligible_server",
        "protocol server_fault timeout",
    ];
    for kind in ErrorKind::ALL {
        let mut covered = covered.iter().flat_map(|kinds| kinds.split(' '));
        let last = match covered.any(|covered| covered == kind.as_str()) {
            true => "1",
            false => "failed",
        };
        check(&format!(
            "{kind}\n| conf:stale_if_error=600s get=1 server:reads={kind} +300s get={last}"
        ))
        .await;
    }
}
