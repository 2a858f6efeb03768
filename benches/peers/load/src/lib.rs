//! An MCP client over HTTP for measurements: one connection and one session for each caller.

mod client;
mod drive;
mod http;
mod keys;
mod paired;
mod process;
mod timing;

pub use client::{Answer, Client, Era, Error};
pub use drive::{Extent, Load, Round, drive};
pub use http::{Endpoint, Exchange, fetch};
pub use keys::Keys;
pub use paired::{Paired, Summary, paired};
pub use process::Usage;
pub use timing::{median, percentile};
