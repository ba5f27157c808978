//! A connection whose client has to read what it asked for.

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::io::{Error, ErrorKind, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

/// Time that a client has to send a request, and to take a further part of the answer.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// A stream that fails once its client has taken nothing of an answer for [`PATIENCE`].
pub struct Connection {
    stream: TokioIo<TcpStream>,
    /// The end of the time for the write that waits for the client.
    limit: Option<Pin<Box<Sleep>>>,
}

impl Connection {
    pub fn new(stream: TcpStream) -> Self {
        Self { stream: TokioIo::new(stream), limit: None }
    }

    /// The result of an attempt to write, or a failure if the client has not read for too long.
    fn in_time(
        &mut self,
        context: &mut Context<'_>,
        attempt: Poll<Result<usize, Error>>,
    ) -> Poll<Result<usize, Error>> {
        if attempt.is_ready() {
            self.limit = None;
            return attempt;
        }
        let limit = self.limit.get_or_insert_with(|| Box::pin(sleep(PATIENCE)));
        limit.as_mut().poll(context).map(|()| Err(ErrorKind::TimedOut.into()))
    }
}

impl Read for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl Write for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<Result<usize, Error>> {
        let attempt = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.in_time(context, attempt)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize, Error>> {
        let attempt = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.in_time(context, attempt)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
