//! Lets a call that needs a person's approval run once, with exactly what was approved.
//!
//! **Rule.** A call that the [policy](ApprovalLayer::new) asks about (by default one whose plan
//! requires confirmation) runs only with an approval of this call: the same principal, replica set,
//! tool, definition of the tool and JSON value of the arguments. One approval, one execution: it is
//! stored as `consumed` before the call is sent, and the stored arguments are what runs. A failure
//! that was certainly not sent gives the approval back until it expires; any other end uses it up,
//! and one without an outcome is `unknown` and never repeated. The principal that asks never
//! decides. A [`Grant`] approves calls before they are made; each use is durable before its call is
//! sent. A call waits up to [`ApprovalConfig::hold`], without a permit or a running deadline,
//! and then ends with an answer that says to ask again. An equal call joins a pending
//! request. A denial bars equal calls for [`ApprovalConfig::cool_off`].
//!
//! A further round of an approved call whose server asked for input is not asked about again, nor
//! are requests about a task that such a call made.
//!
//! **Readiness** is that of the inner service, taken again after the wait. **Cancellation:** a
//! dropped call leaves its request open, or, once sent, its outcome `unknown`. **Clone:** services
//! of one layer share their requests. **Errors:** a store that fails, limits that are reached and
//! arguments that two parsers may read differently refuse the call: `NotSent`, never a yes.
//!
//! **Order.** Inside authorization, outside the cache: asked once per call, before any deadline.

mod answer;
mod asked;
mod canonical;
mod client;
mod clock;
mod config;
mod error;
mod execution;
#[cfg(feature = "store")]
mod file;
mod future;
mod grant;
mod grants;
mod layer;
mod manager;
mod memory;
pub mod questions;
mod request;
#[cfg(feature = "store")]
mod seal;
mod service;
mod step;
mod store;
mod sweep;
mod table;

pub use answer::APPROVAL_META;
pub use asked::{Asked, Key};
pub use config::ApprovalConfig;
pub use error::{ApprovalError, StoreError};
pub use execution::{Execution, Outcome};
pub use future::ApprovalFuture;
pub use grant::{Grant, Pattern};
pub use layer::ApprovalLayer;
pub use manager::Approvals;
pub use memory::LocalStore;
pub use request::{Decision, Request, RequestId, State};
pub use service::Approval;
pub use store::{Bounds, Limit, Put, Store, Stored};
