//! How the servers of a set are, and which of them get calls.
//!
//! Four things say how a server is: its breakers, which its gate asks; its connection; the pings it
//! answers; and the calls it was sent. The last is what is counted here, once for each attempt.
//!
//! **What counts.** What the breakers count: a server that cannot be reached, is lost, answers late,
//! wrongly or with a fault of its own is at fault. An answer is good, also a tool's own failure and a
//! refusal that blames the caller. Nothing is what a gate of ours refused, what was dropped, what was
//! told to come later, and what a caller in a hurry cut short ([`judge`]).
//!
//! **Ejection.** Five faults in a row eject a server, and so does a share of good calls that is 30
//! points below that of the others ([`HealthConfig`] has the numbers and where they are from). It gets
//! no calls for 30 s, the next time for 60 s, 300 s at most; good time takes that off again. Not more
//! than 30 % of a set are ejected, always one if need be, and never the last that is fit. A set of one
//! ejects nobody. Nor is anybody ejected while most calls of the others fail, too, and a probe that
//! fails then ends the ejection: what is wrong is no one server, and to leave out those that fail
//! first helps nobody. Envoy and Finagle go by the row alone; in an outage of a whole set, the one that
//! was ejected came back half a minute after the others.
//!
//! **Return.** When the time is over, one call is let through. If it ends well, the server is back,
//! with a tenth of its share, which grows to all of it over 30 s (strategies that count turns, and draw
//! nobody, give it all at once); if not, it is ejected for longer. The
//! call is never a write that must not run twice, where a read may come in its place: it waits one
//! ejection time more for one, as the breakers do. Apart from that nothing that needs a weight goes to a
//! server in doubt.
//!
//! **Panic.** If less than half of a set is fit, calls that only read go to ejected servers as well:
//! the few that are left would not bear everybody's calls, and a doubtful answer is better than none.
//! Servers whose connection is gone stay out of it: they cannot answer.
//!
//! **Cost.** Asking whether a server is fit is one load of one word. A good call adds to a counter of
//! the set, and to one of the server if shares are compared. There is no lock on either way and no task of its own:
//! what has to be done now and then is done by the call that finds it due.

mod config;
mod ejection;
mod moment;
mod observer;
mod outlier;
mod panic;
mod ping;
mod server;
mod set;
mod slow_start;
mod state;
mod verdict;
mod word;

pub use config::{HealthConfig, PingConfig};
pub use observer::HealthUpdate;
pub use ping::Pings;
pub(crate) use server::{Doubt, ServerHealth, Ticket};
pub(crate) use set::{Health, SetHealth};
pub(crate) use state::Start;
pub use state::{HealthChange, HealthState, HealthStatus, Presence, Witness};
pub(crate) use verdict::{Risk, hurry, judge_in_hurry};
pub use verdict::{Verdict, judge};
