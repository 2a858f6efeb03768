//! Spans and metrics, as a subscriber and an exporter see them.

mod attempt;
mod call_span;
mod capture;
mod contents;
mod fields;
mod measured;
mod sampled;
