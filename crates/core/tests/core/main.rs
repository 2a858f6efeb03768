//! The types and rules that all layers share.

mod properties;
mod refine;
mod refine_readers;
mod resolve;
mod size;
