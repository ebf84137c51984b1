//! The bytes of records, so that what is read back can be verified.

use crate::lsm::table::Entry;

/// Fill `buffer` with records of `record_bytes`; the rest of it, behind the last record, is zero.
pub fn fill(entries: &[Entry], record_bytes: usize, buffer: &mut [u8]) {
    let mut records = buffer.chunks_mut(record_bytes);
    for (entry, record) in entries.iter().zip(records.by_ref()) {
        fill_record(*entry, record);
    }
    for rest in records {
        rest.fill(0);
    }
}

/// Compare `buffer` with such records, and the rest behind them; the error names the first record that differs.
pub fn verify(entries: &[Entry], record_bytes: usize, buffer: &[u8]) -> Result<(), String> {
    let mut expected = vec![0; record_bytes];
    for (entry, record) in entries.iter().zip(buffer.chunks(record_bytes)) {
        fill_record(*entry, &mut expected);
        if record != expected {
            let word = |at: usize| u64::from_le_bytes(record[at..at + 8].try_into().expect("8"));
            return Err(format!(
                "the record of key {:#x}, write {}, is not what was written: it begins as key {:#x}, write {}",
                entry.key,
                entry.sequence,
                word(0),
                word(8)
            ));
        }
    }
    let end = buffer.len().min(entries.len() * record_bytes);
    match buffer[end..].iter().position(|&byte| byte != 0) {
        None => Ok(()),
        Some(at) => Err(format!(
            "byte {at} behind the last record is {:#04x}, not 0 as it was written",
            buffer[end + at]
        )),
    }
}

/// Key and sequence number, then bytes that follow from both.
fn fill_record(entry: Entry, record: &mut [u8]) {
    let mut state = entry.key ^ entry.sequence.rotate_left(32);
    let words = [entry.key, entry.sequence].into_iter();
    let body = std::iter::repeat_with(|| {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^ (mixed >> 27)
    });
    for (word, place) in words.chain(body).zip(record.chunks_mut(8)) {
        place.copy_from_slice(&word.to_le_bytes()[..place.len()]);
    }
}
