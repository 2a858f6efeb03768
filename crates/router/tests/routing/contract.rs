//! The router keeps what all layers must keep.

use crate::bed::{member, test_set};
use callward_router::{Pool, Router};
use callward_testkit::{MockService, contract};

#[tokio::test(start_paused = true)]
async fn the_router_keeps_the_contract_with_one_and_with_several_servers() {
    for ids in [&["a"][..], &["a", "b"]] {
        contract::check(|inner: MockService| {
            let pool = std::sync::Arc::new(Pool::new());
            pool.set_members(
                test_set(),
                ids.iter().map(|id| member(id, &inner)).collect(),
            );
            Router::new(pool)
        })
        .await;
    }
}
