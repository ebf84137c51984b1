//! The data of requests.

/// The data buffer of a request.
pub enum Bytes<'a> {
    /// A request without data.
    None,
    /// The bytes that a read fills.
    Fill(&'a mut [u8]),
    /// The bytes of a write.
    Store(&'a [u8]),
}
