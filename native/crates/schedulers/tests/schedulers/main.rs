//! Schedulers on a bench: what all of them keep, and the worked cases of each.

mod bench;
mod documents;
mod flashfq;
mod gimbal;
mod parda;
mod promises;
mod reflex;
mod reflex_threads;
mod tenants;
