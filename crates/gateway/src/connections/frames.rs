//! The frames that a client of HTTP/2 sends besides its requests.

/// How long the text is that a connection begins with.
const PREFACE: usize = 24;
/// How long the head of a frame is.
const HEAD: usize = 9;
/// The types of frames that bring a request further.
const DATA: u8 = 0;
const HEADERS: u8 = 1;

/// Follows frames across the pieces in which they arrive.
#[derive(Debug)]
pub(super) struct Frames {
    /// How many bytes come before the next head.
    before: usize,
    /// What has arrived of that head.
    head: Vec<u8>,
}

impl Frames {
    pub(super) fn new() -> Self {
        let (before, head) = (PREFACE, Vec::new());
        Self { before, head }
    }

    /// Returns how many control frames these bytes complete the heads of: all but HEADERS, and DATA
    /// that has some. The library alone bounds those.
    pub(super) fn control(&mut self, mut bytes: &[u8]) -> u32 {
        let mut found = 0;
        while !bytes.is_empty() {
            let (payload, rest) = bytes.split_at(self.before.min(bytes.len()));
            self.before -= payload.len();
            let (head, rest) = rest.split_at(rest.len().min(HEAD - self.head.len()));
            self.head.extend_from_slice(head);
            bytes = rest;
            if let Ok([high, middle, low, kind, ..]) = <[u8; HEAD]>::try_from(&*self.head) {
                self.head.clear();
                self.before = u32::from_be_bytes([0, high, middle, low]) as usize;
                let is_progress = kind == HEADERS || (kind == DATA && self.before > 0);
                found += u32::from(!is_progress);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_frames_are_counted_wherever_they_are_cut() {
        let mut sent = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
        // SETTINGS, HEADERS, DATA with and without data, PING, WINDOW_UPDATE, one of no known type
        for (kind, length) in [(4, 6), (1, 20), (0, 300), (0, 0), (6, 8), (8, 4), (99, 1)] {
            sent.extend([0, (length >> 8) as u8, length as u8, kind, 0, 0, 0, 0, 1]);
            sent.resize(sent.len() + length, kind);
        }
        for size in 1..sent.len() {
            let mut frames = Frames::new();
            let found: u32 = sent.chunks(size).map(|part| frames.control(part)).sum();
            assert_eq!(found, 5, "{size}");
        }
    }
}
