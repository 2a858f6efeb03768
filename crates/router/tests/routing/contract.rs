//! Every layer of this crate keeps what all layers must keep.

use std::sync::Arc;

use callward_core::{ReplicaSetId, ServerId};
use callward_router::{Member, Pool, Router};
use callward_testkit::{MockService, contract};

#[tokio::test(start_paused = true)]
async fn the_router_keeps_the_contract() {
    contract::check(|inner: MockService| {
        let pool = Arc::new(Pool::new());
        let member = Member::new(ServerId::new("a").unwrap(), inner);
        pool.set_members(ReplicaSetId::new("test").unwrap(), vec![member]);
        Router::new(pool)
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn the_router_keeps_the_contract_with_several_servers() {
    contract::check(|inner: MockService| {
        let pool = Arc::new(Pool::new());
        let members = ["a", "b"].map(|id| Member::new(ServerId::new(id).unwrap(), inner.clone()));
        pool.set_members(ReplicaSetId::new("test").unwrap(), members.into());
        Router::new(pool)
    })
    .await;
}
