//! A collector in a process of its own, that reads and forgets.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};

/// What starts the collector, in place of the bench.
pub(crate) const COLLECTOR: &str = "--collector";

/// This program once more, as a collector. Dropped, it ends.
pub(crate) struct Collector {
    process: Child,
    pub(crate) endpoint: String,
}

impl Collector {
    pub(crate) fn start() -> Self {
        let mut process = Command::new(std::env::current_exe().unwrap())
            .arg(COLLECTOR)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut address = String::new();
        let mut output = BufReader::new(process.stdout.take().unwrap());
        output.read_line(&mut address).unwrap();
        Self {
            process,
            endpoint: format!("http://{}", address.trim()),
        }
    }
}

impl Drop for Collector {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Prints its address, answers 200 to everything, and discards it.
pub(crate) fn collect() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    println!("{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || swallow(stream));
        }
    });
    // it ends with the bench, however that ends
    let _ = std::io::stdin().read(&mut [0]);
}

/// Reads requests by their length, and nothing more of them.
fn swallow(mut stream: TcpStream) -> Option<()> {
    let mut bytes = Vec::new();
    let mut part = vec![0; 1 << 16];
    loop {
        let end = loop {
            if let Some(end) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break end + 4;
            }
            let read = stream.read(&mut part).ok().filter(|read| *read > 0)?;
            bytes.extend_from_slice(&part[..read]);
        };
        let head = String::from_utf8_lossy(&bytes[..end]).to_lowercase();
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length:"))?
            .trim()
            .parse::<usize>()
            .ok()?;
        while bytes.len() < end + length {
            let read = stream.read(&mut part).ok().filter(|read| *read > 0)?;
            bytes.extend_from_slice(&part[..read]);
        }
        bytes.drain(..end + length);
        let answer =
            b"HTTP/1.1 200 OK\r\ncontent-type: application/x-protobuf\r\ncontent-length: 0\r\n\r\n";
        stream.write_all(answer).ok()?;
    }
}
