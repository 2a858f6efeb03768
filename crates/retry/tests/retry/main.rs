//! The retry layer and its hedges, as a caller sees them, on a paused clock.

mod backoff;
mod bed;
mod budget;
mod deadlines;
mod errors;
mod hedge;
mod pauses;
mod retries;
mod waiting;
