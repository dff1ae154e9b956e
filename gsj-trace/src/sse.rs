//! Server-Sent Events, read from a byte stream that may be cut anywhere.
//!
//! The bytes of each event are kept as they came, because a recorded stream is evidence and must never be re-encoded.

/// One dispatched event.
///
/// The `raw` members of all events of a stream, joined, are the stream itself up to its last event: comments, unknown
/// fields and blank lines before an event belong to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SseEvent {
    /// The value of the last `event` field, absent when there was none or it was empty.
    pub event: Option<String>,
    /// The `data` lines joined with a line feed; bytes that are not UTF-8 become U+FFFD here and stay in `raw`.
    pub data: String,
    /// The bytes of the event as received, including its terminating blank line.
    pub raw: Vec<u8>,
}

/// Splits a byte stream into events, following the WHATWG rules for `text/event-stream`.
///
/// Lines end with CR, LF or CRLF. An event whose blank line ends with a lone CR is given out when the next byte is
/// seen, because that byte may be the LF that belongs to it; every other event is given out at its last byte.
/// The parser sets no bound on the size of an event: a caller that reads from an untrusted peer compares
/// [`SseParser::pending_bytes`] with its own limit after each push.
///
/// ```
/// use gsj_trace::sse::SseParser;
///
/// let mut parser = SseParser::new();
/// assert!(parser.push(b"data: {\"a\"").is_empty());
/// let events = parser.push(b":1}\n\ndata: [DONE]\n\n");
/// assert_eq!(events[0].data, "{\"a\":1}");
/// assert_eq!(events[1].data, "[DONE]");
/// ```
#[derive(Debug, Clone, Default)]
pub struct SseParser {
    raw: Vec<u8>,
    /// Where in `raw` the current line begins.
    line_start: usize,
    pending_cr: Option<PendingCr>,
    past_first_line: bool,
    event: Option<String>,
    data: String,
    has_data: bool,
}

/// What the last byte, a CR, ended; decided when the following byte is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PendingCr {
    Line,
    Event,
}

impl SseParser {
    /// A parser at the beginning of a stream.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Takes the next bytes and gives out the events that they complete.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<SseEvent> {
        let mut events = Vec::new();
        let mut rest = bytes;
        while !rest.is_empty() {
            if let Some(pending) = self.pending_cr.take() {
                if rest[0] == b'\n' {
                    self.raw.push(b'\n');
                    rest = &rest[1..];
                }
                self.line_start = self.raw.len();
                if pending == PendingCr::Event {
                    events.extend(self.dispatch());
                }
                continue;
            }
            let Some(at) = rest.iter().position(|&b| b == b'\n' || b == b'\r') else {
                self.raw.extend_from_slice(rest);
                break;
            };
            self.raw.extend_from_slice(&rest[..=at]);
            let ended_event = self.line_ended();
            if rest[at] == b'\r' {
                self.pending_cr = Some(if ended_event { PendingCr::Event } else { PendingCr::Line });
            } else {
                self.line_start = self.raw.len();
                if ended_event {
                    events.extend(self.dispatch());
                }
            }
            rest = &rest[at + 1..];
        }
        events
    }

    /// Ends the stream and gives out the event that had no terminating blank line, when it holds data.
    ///
    /// The WHATWG rules would discard it; an engine that closes the connection right after its last line has still
    /// said that line.
    pub fn finish(&mut self) -> Option<SseEvent> {
        if self.pending_cr.take().is_none() && self.line_start < self.raw.len() {
            // The line has no terminator; reading it needs one byte behind it.
            self.raw.push(b'\n');
            self.line_ended();
            self.raw.pop();
        }
        self.line_start = self.raw.len();
        let event = self.dispatch();
        *self = Self::new();
        event
    }

    /// How many bytes of an event that is not complete are held.
    #[must_use]
    pub fn pending_bytes(&self) -> usize {
        self.raw.len()
    }

    /// Reads the line that ends with the last byte of `raw`; true when it was blank.
    fn line_ended(&mut self) -> bool {
        let mut line = &self.raw[self.line_start..self.raw.len() - 1];
        if !self.past_first_line {
            self.past_first_line = true;
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
        }
        if line.is_empty() {
            return true;
        }
        let (field, value) = match line.iter().position(|&b| b == b':') {
            Some(at) => (&line[..at], &line[at + 1..]),
            None => (line, &line[line.len()..]),
        };
        let value = String::from_utf8_lossy(value.strip_prefix(b" ").unwrap_or(value));
        match field {
            b"data" => {
                if self.has_data {
                    self.data.push('\n');
                }
                self.has_data = true;
                self.data.push_str(&value);
            }
            b"event" => self.event = Some(value.into_owned()).filter(|name| !name.is_empty()),
            _ => {}
        }
        false
    }

    /// The event read so far; without data there is none, and its bytes stay with the next.
    fn dispatch(&mut self) -> Option<SseEvent> {
        let event = self.event.take();
        if !std::mem::take(&mut self.has_data) {
            return None;
        }
        self.line_start = 0;
        Some(SseEvent { event, data: std::mem::take(&mut self.data), raw: std::mem::take(&mut self.raw) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all(bytes: &[u8], cuts: &[usize]) -> Vec<SseEvent> {
        let mut parser = SseParser::new();
        let mut out = Vec::new();
        let mut from = 0;
        for &cut in cuts {
            let to = cut.clamp(from, bytes.len());
            out.extend(parser.push(&bytes[from..to]));
            from = to;
        }
        out.extend(parser.push(&bytes[from..]));
        out.extend(parser.finish());
        out
    }

    fn data(bytes: &[u8]) -> Vec<String> {
        all(bytes, &[]).into_iter().map(|e| e.data).collect()
    }

    #[test]
    fn each_line_ending_ends_a_line() {
        for stream in [
            "data: a\n\ndata: b\n\n",
            "data: a\r\n\r\ndata: b\r\n\r\n",
            "data: a\r\rdata: b\r\r",
            "data: a\r\n\ndata: b\n\r",
        ] {
            assert_eq!(data(stream.as_bytes()), ["a", "b"], "{stream:?}");
        }
    }

    #[test]
    fn an_event_with_lf_is_given_out_at_its_last_byte() {
        let mut parser = SseParser::new();
        assert_eq!(parser.push(b"data: a\n\n").len(), 1);
        assert_eq!(parser.pending_bytes(), 0);
        assert_eq!(parser.push(b"data: a\r\n\r\n").len(), 1);
    }

    #[test]
    fn comments_and_unknown_fields_are_no_events_but_stay_in_raw() {
        let stream = b": hello\n\nid: 7\nretry: 1\nevent: ping\ndata:x\ndata:  y\ndata\n\n: tail\n\n";
        let events = all(stream, &[]);
        assert_eq!(events.len(), 1);
        assert_eq!(events[0].event.as_deref(), Some("ping"));
        assert_eq!(events[0].data, "x\n y\n");
        assert_eq!(events[0].raw, &stream[..stream.len() - b": tail\n\n".len()]);
    }

    #[test]
    fn an_event_name_does_not_outlive_its_block() {
        let events = all(b"event: lost\n\ndata: a\n\n", &[]);
        assert_eq!((events[0].event.as_deref(), events[0].data.as_str()), (None, "a"));
    }

    #[test]
    fn a_byte_order_mark_is_dropped_once() {
        assert_eq!(data(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n"), ["a"]);
    }

    #[test]
    fn the_end_gives_out_an_unterminated_event_and_resets() {
        let mut parser = SseParser::new();
        assert!(parser.push(b"data: a\n\ndata: [DO").len() == 1);
        parser.push(b"NE]");
        assert_eq!(parser.finish().map(|e| (e.data, e.raw)), Some(("[DONE]".into(), b"data: [DONE]".to_vec())));
        assert_eq!(parser.finish(), None);
        assert_eq!(data(b"data: a\n"), ["a"]);
        assert_eq!(data(b"data: a\r"), ["a"]);
        assert_eq!(data(b": nothing"), Vec::<String>::new());
    }

    #[test]
    fn bytes_that_are_not_utf8_stay_in_raw() {
        let events = all(b"data: \xff\xc3\n\n", &[]);
        assert_eq!(
            (events[0].data.as_str(), events[0].raw.as_slice()),
            ("\u{fffd}\u{fffd}", b"data: \xff\xc3\n\n".as_slice())
        );
    }

    const PARTS: &[&[u8]] = &[
        b"\n",
        b"\r",
        b"\r\n",
        b"data: ",
        b"data:",
        b"event: e",
        b": c",
        b"x",
        b"\xc3\xa9",
        b"\xff",
        b"\xef\xbb\xbf",
        b"data",
    ];

    proptest! {
        #[test]
        fn any_chunking_gives_the_same_events(
            parts in proptest::collection::vec(proptest::sample::select(PARTS), 0..60),
            mut cuts in proptest::collection::vec(0usize..200, 0..20),
        ) {
            let stream: Vec<u8> = parts.concat();
            cuts.sort_unstable();
            let whole = all(&stream, &[]);
            prop_assert_eq!(&all(&stream, &cuts), &whole);
            let single: Vec<usize> = (1..stream.len()).collect();
            prop_assert_eq!(&all(&stream, &single), &whole);
            let raw: Vec<u8> = whole.iter().flat_map(|e| e.raw.clone()).collect();
            prop_assert!(stream.starts_with(&raw), "the raw bytes are the stream, unchanged");
        }
    }
}
