//! When the connection of an answer is free again.

use super::*;
use crate::client::http::answer::AnswerBody;

/// An answer of which some is still to come.
const HALF: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf";

/// Sends a request, gets this for an answer, and reads nothing of its body.
async fn unread(pool: &Arc<Pool>, answer: &[u8]) -> (AnswerBody, DuplexStream) {
    let (conn, mut other) = duplex().await;
    let (request, _upload) = request();
    let server = async {
        assert!(read_request(&mut other).await);
        other.write_all(answer).await.unwrap();
    };
    let (answered, ()) = tokio::join!(conn.send(request), server);
    let (conn, response) = answered.unwrap();
    let body = AnswerBody::new(response.into_body(), conn, pool.clone());
    (body, other)
}

#[tokio::test]
async fn an_answer_that_is_not_read_to_its_end_closes_its_connection() {
    let pool = Arc::new(Pool::default());
    for reads in [0, 1] {
        let (mut body, mut other) = unread(&pool, HALF).await;
        for _ in 0..reads {
            let frame = body.frame().await.unwrap().unwrap();
            assert_eq!(frame.into_data().unwrap(), "half");
        }
        drop(body);
        assert_eq!(other.read(&mut [0; 8]).await.unwrap(), 0);
        assert_eq!(pool.len(), 0, "{reads}");
    }
}

#[tokio::test]
async fn an_answer_that_came_whole_frees_its_connection_before_it_is_read() {
    let pool = Arc::new(Pool::default());
    let (body, _other) = unread(&pool, OK).await;
    assert_eq!(pool.len(), 1);
    let mut again = pool.take().unwrap();
    assert!(again.look());
    assert_eq!(body.collect().await.unwrap().to_bytes(), "ok");
}

#[tokio::test]
async fn an_answer_in_pieces_frees_its_connection_with_the_last() {
    let pool = Arc::new(Pool::default());
    let head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nab\r\n";
    let (mut body, mut other) = unread(&pool, head).await;
    let frame = body.frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "ab");
    assert_eq!(pool.len(), 0);
    other.write_all(b"1\r\nc\r\n0\r\n\r\n").await.unwrap();
    let frame = body.frame().await.unwrap().unwrap();
    assert_eq!(frame.into_data().unwrap(), "c");
    assert!(body.frame().await.is_none());
    assert_eq!(pool.len(), 1);
}

#[tokio::test]
async fn an_answer_that_is_dropped_when_all_of_it_came_frees_its_connection() {
    let pool = Arc::new(Pool::default());
    let (body, mut other) = unread(&pool, HALF).await;
    other.write_all(b" more").await.unwrap();
    assert_eq!(pool.len(), 0, "no call has looked");
    drop(body);
    assert_eq!(pool.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_reader_of_an_answer_is_woken_by_more_of_it() {
    let pool = Arc::new(Pool::default());
    let (body, mut other) = unread(&pool, HALF).await;
    let more = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        other.write_all(b" more").await.unwrap();
    };
    let begun = Instant::now();
    // a task of its own, which nothing else wakes
    let read = tokio::spawn(tokio::time::timeout(LONG, body.collect()));
    let (read, ()) = tokio::join!(read, more);
    assert_eq!(read.unwrap().unwrap().unwrap().to_bytes(), "half more");
    // and not only looked once more when the time was over
    assert_eq!(begun.elapsed(), Duration::from_secs(1));
}
