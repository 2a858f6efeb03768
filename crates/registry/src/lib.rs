//! Knows which server offers which tool, and what each tool may do.
//!
//! A [`Registry`] is told what each server lists. It reads the hints, fills their gaps from all tools
//! of the server together, weighs the sources, derives a plan for each tool and for each rule over
//! its arguments, and publishes the whole as a [`Catalogue`]: an immutable
//! snapshot with a generation number, read without locks and swapped whole.
//!
//! # Rule
//!
//! Tools belong to a replica set, not to a server. Servers of one set that list the same name offer
//! the same tool: the definition of the server that came first counts, and a definition that differs
//! is reported. A tool that cannot be used (its hints contradict each other, its name is taken) is
//! refused visibly, and never hides the others.
//!
//! Each tool that may write is paired with one of its set that only reads, so that whoever gets no
//! answer knows what to check with: as the operator says ([`SetOptions::verify_with`]), else by their
//! names ([`Readers`](callward_core::infer::Readers)). Pairs follow the lists: a reading tool that
//! goes is nobody's counterpart any more.
//!
//! # Names
//!
//! Clients see `set__tool`, or `tool` where the set has no prefix: unique, stable, in the order of
//! the server's own list. Names that carry a prefix have at most 64 characters, of those that model APIs accept: ASCII
//! letters, digits, `_` and `-`. In one that would have others they become `_`, one that would be longer is cut, and both
//! are closed with eight hex digits of their digest. Calls may also say `prefix__tool`, `set.tool` or `set::tool`.
//!
//! ```
//! use callward_core::{ReplicaSetId, ServerId, ToolDefinition};
//! use callward_registry::{Registry, SetOptions};
//!
//! let registry = Registry::new();
//! let set = ReplicaSetId::new("orders")?;
//! let tool = ToolDefinition::from_json(r#"{"name":"get","annotations":{"readOnlyHint":true}}"#)?;
//! registry.set_options(set.clone(), SetOptions::default().with_prefix("orders"));
//! registry.register(&set, &ServerId::new("orders-1")?, vec![tool]);
//!
//! let catalogue = registry.catalogue();
//! assert_eq!(catalogue.find("orders.get").unwrap().client_name(), "orders__get");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod catalogue;
mod listing;
mod names;
mod options;
mod registry;
mod rename;
mod set;
mod verify;

pub use catalogue::{Catalogue, Entry, Refusal};
pub use names::KeptName;
pub use options::SetOptions;
pub use registry::{Changes, Registry};
pub use rename::rename;
