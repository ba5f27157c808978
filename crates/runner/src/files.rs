//! Files: written to a temporary file and renamed, and errors that name the path.

use sha2::{Digest, Sha256};
use std::fmt;
use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Why a file could not be read or written.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}: {message}", path.display())]
pub struct Error {
    /// The file or folder.
    pub path: PathBuf,
    /// What happened to the file.
    pub message: String,
}

/// The error that something happened to the file or the folder at a path.
pub fn error(path: &Path, message: impl fmt::Display) -> Error {
    Error { path: path.to_owned(), message: message.to_string() }
}

/// Bytes as lower-case hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut text = String::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.push(char::from(DIGITS[usize::from(byte >> 4)]));
        text.push(char::from(DIGITS[usize::from(byte & 15)]));
    }
    text
}

/// SHA-256 of these bytes, 64 hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// Writes bytes to a temporary file in the same directory, then renames it, so that nobody ever sees a part of it. It
/// need not survive a power failure, unlike a file of [`write_synced`]: for pages and caches, which can be made again.
///
/// # Errors
/// If it cannot be written.
pub fn write_atomically(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    stream_atomically(path, |file| file.write_all(bytes).map_err(|e| error(path, e)))
}

/// Lets `write` write to a temporary file in the same directory, then renames it, so that nobody ever sees a part of
/// it. Returns what `write` returned. A file that is at the path is replaced, and its permissions are not kept.
///
/// # Errors
/// If it cannot be written, or `write` fails; then what is at the path stays as it was, and no other file is left.
pub fn stream_atomically<T>(
    path: &Path,
    write: impl FnOnce(&mut fs::File) -> Result<T, Error>,
) -> Result<T, Error> {
    stream_with_permissions(path, None, write)
}

/// Lets `write` write a file as [`stream_atomically`] does. The file gets these permissions, or if they are `None`
/// those that the process's umask leaves to a new file.
fn stream_with_permissions<T>(
    path: &Path,
    permissions: Option<fs::Permissions>,
    write: impl FnOnce(&mut fs::File) -> Result<T, Error>,
) -> Result<T, Error> {
    let folder = folder_of(path);
    let mut temporary = tempfile::Builder::new();
    temporary.prefix(WRITING);
    // By default nobody but its owner may read a temporary file, whatever the umask says.
    #[cfg(unix)]
    temporary.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = temporary.tempfile_in(folder).map_err(|e| error(folder, e))?;
    // It is locked while it is written, so that no other process takes it for a leftover.
    let _ = file.as_file().try_lock();
    if let Some(permissions) = permissions {
        // They are set before anything is written, because others may not be allowed to read it. A file system that
        // has no permissions refuses, which changes nothing.
        let _ = file.as_file().set_permissions(permissions);
    }
    let written = write(file.as_file_mut())?;
    file.persist(path).map_err(|e| error(path, e.error))?;
    Ok(written)
}

/// The folder that a file is in.
fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes a file that a user names, as [`stream_named`] does.
///
/// # Errors
/// As for [`stream_named`].
pub fn write_named(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    stream_named(path, |file| file.write_all(bytes).map_err(|e| error(path, e)))
}

/// Streams a file that a user names, such as that of `--out`. A new or a regular file is written
/// to a temporary file and renamed; if the path is a symbolic link, this happens to the file that
/// the link leads to. What is no regular file is not replaced: a pipe or a character device, such
/// as `/dev/null`, is written into.
///
/// # Errors
/// If the path leads to a folder or to anything else that is not written to, the file cannot be
/// written, or `write` fails.
pub fn stream_named<T>(
    path: &Path,
    write: impl FnOnce(&mut fs::File) -> Result<T, Error>,
) -> Result<T, Error> {
    match Destination::new(path).map_err(|e| error(path, io_message(&e)))? {
        Destination::File { path: file, permissions } => {
            // An earlier process may have been killed while it wrote there.
            remove_leftovers(folder_of(&file));
            stream_with_permissions(&file, permissions, write)
        }
        Destination::Stream(mut stream) => write(&mut stream),
    }
}

/// What the path of a file that is to be written leads to.
enum Destination {
    /// A regular file, or none yet. An existing file keeps its permissions.
    File { path: PathBuf, permissions: Option<fs::Permissions> },
    /// Something that takes bytes one after another and cannot be replaced.
    Stream(fs::File),
}

impl Destination {
    /// Finds out what a path leads to, without changing it. A pipe is opened, which waits until somebody reads it.
    ///
    /// # Errors
    /// If the path leads to a folder, to a link without a file, or to anything else that cannot be written to.
    fn new(path: &Path) -> io::Result<Self> {
        let about = match fs::metadata(path) {
            Ok(about) => about,
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                if path.symlink_metadata().is_ok() {
                    let message = "it is a symbolic link that leads to no file";
                    return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
                }
                return Ok(Self::File { path: path.to_owned(), permissions: None });
            }
            Err(e) => return Err(e),
        };
        // `/dev/stdout` may lead to a regular file to which the shell appends: renaming another
        // file over it would remove what is in it.
        #[cfg(unix)]
        if let Some(stream) = standard_stream(&about) {
            return Ok(Self::Stream(stream));
        }
        let kind = about.file_type();
        if kind.is_file() {
            return Ok(Self::File {
                path: fs::canonicalize(path)?,
                permissions: Some(about.permissions()),
            });
        }
        if kind.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        #[cfg(unix)]
        {
            use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
            if kind.is_fifo() || kind.is_char_device() {
                // It waits for the reader of a pipe, as every program that writes to one does.
                let mut options = fs::OpenOptions::new();
                options.write(true).custom_flags(libc::O_NOCTTY);
                return options.open(path).map(Self::Stream);
            }
        }
        let message = "it is neither a file, a pipe nor a character device";
        Err(io::Error::new(io::ErrorKind::InvalidInput, message))
    }
}

/// Another handle of standard output or standard error, if that is the file with this metadata; `None` if neither is.
#[cfg(unix)]
fn standard_stream(about: &fs::Metadata) -> Option<fs::File> {
    use std::os::fd::AsFd;
    use std::os::unix::fs::MetadataExt;
    let stdout = io::stdout().as_fd().try_clone_to_owned();
    let stderr = io::stderr().as_fd().try_clone_to_owned();
    let mut streams = [stdout, stderr].into_iter().flatten().map(fs::File::from);
    streams.find(|stream| {
        stream.metadata().is_ok_and(|own| (own.dev(), own.ino()) == (about.dev(), about.ino()))
    })
}

/// Checks that files can be created in a folder, by a temporary one: before a run or a report begins, whose work would
/// be lost.
///
/// # Errors
/// If they cannot, also because there is no such folder.
pub fn check_writable(folder: &Path) -> Result<(), Error> {
    let made = tempfile::Builder::new().prefix(WRITING).tempfile_in(folder);
    made.map(drop).map_err(|e| error(folder, format!("no file can be created in it: {e}")))
}

/// Writes and syncs a temporary file in the same directory, then renames it, so that it also survives a power failure:
/// for files that cannot be made again in a moment.
///
/// # Errors
/// If it cannot be written.
pub fn write_synced(path: &Path, bytes: &[u8]) -> Result<(), Error> {
    stream_atomically(path, |file| {
        file.write_all(bytes).and_then(|()| file.sync_all()).map_err(|e| error(path, e))
    })?;
    // The folder's names too, where a folder can be opened for that.
    if let Some(Ok(folder)) = path.parent().map(fs::File::open) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// The age of an unlocked temporary file from which on it is a leftover. A younger one may be that of a writer that has
/// not locked it yet.
const LEFTOVER_AGE: Duration = Duration::from_secs(1);

/// Removes the temporary files in a folder that killed processes have left. Nothing depends on it, so that errors are
/// ignored.
pub fn remove_leftovers(folder: &Path) {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    for entry in entries.filter(is_unfinished) {
        // Its writer holds a lock, which the system drops with the process.
        let opened = open_regular(&entry.path(), fs::File::options().read(true));
        if opened.is_ok_and(|file| file.try_lock().is_ok()) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether an entry of a folder is a temporary file that no process has written to for [`LEFTOVER_AGE`]. Its writer may
/// still be there and hold the lock, which the caller tries.
fn is_unfinished(entry: &fs::DirEntry) -> bool {
    if !entry.file_name().to_string_lossy().starts_with(WRITING) {
        return false;
    }
    entry.metadata().is_ok_and(|about| {
        let is_old = about.modified().is_ok_and(|t| t.elapsed().is_ok_and(|t| t > LEFTOVER_AGE));
        about.is_file() && is_old
    })
}

/// The most bytes that are read of a file of results or of reports, whose writers do not know how
/// long it may be. None that was ever written is as long.
pub const MOST_READ: u64 = 1 << 30;

/// The message about a file or a folder of results or reports that is a symbolic link.
const LINK: &str = "is a symbolic link, which results and reports do not follow";

/// What happens where the last part of a path is a symbolic link.
#[derive(Clone, Copy, PartialEq, Eq)]
enum SymbolicLinks {
    Followed,
    Refused,
}

/// Opens a regular file, in the way that `options` say, except for their flags of the system, which are replaced.
///
/// # Errors
/// If it is not regular: a pipe would be waited for, and a device need not end. This is checked
/// after it was opened, which waits for nothing, so that it cannot be exchanged in between. If it
/// is a symbolic link, unless those are followed.
fn open(path: &Path, options: &mut fs::OpenOptions, links: SymbolicLinks) -> io::Result<fs::File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        let flag = match links {
            SymbolicLinks::Followed => 0,
            SymbolicLinks::Refused => libc::O_NOFOLLOW,
        };
        options.custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | flag);
    }
    #[cfg(not(unix))]
    if links == SymbolicLinks::Refused {
        check_kind(fs::symlink_metadata(path)?.file_type())?;
    }
    let opened = options.open(path).and_then(|file| {
        check_kind(file.metadata()?.file_type())?;
        Ok(file)
    });
    opened.map_err(|e| {
        // The system says of a link that there are too many of them, and of a pipe that there is
        // no such device.
        let about = match links {
            SymbolicLinks::Followed => fs::metadata(path),
            SymbolicLinks::Refused => fs::symlink_metadata(path),
        };
        about.map_or(None, |about| check_kind(about.file_type()).err()).unwrap_or(e)
    })
}

/// An error that says what something is, unless it is a regular file.
fn check_kind(kind: fs::FileType) -> io::Result<()> {
    let (error, message) = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => {
            (io::ErrorKind::IsADirectory, "it is a folder; a file is expected")
        }
        kind if kind.is_symlink() => (io::ErrorKind::InvalidInput, LINK),
        _ => (io::ErrorKind::InvalidInput, "it is not a regular file"),
    };
    Err(io::Error::new(error, message))
}

/// All bytes of a regular file, which may have at most `most`.
fn read(path: &Path, most: u64, links: SymbolicLinks) -> io::Result<Vec<u8>> {
    let file = open(path, fs::File::options().read(true), links)?;
    let length = file.metadata()?.len();
    // There may be more than announced: the size of a file of /proc is 0.
    if length > most { Err(too_long(most)) } else { read_bounded(file, length as usize, most) }
}

/// All bytes of a source, about `expected`, for which room is made, and at most `most`; more are an error.
fn read_bounded(source: impl Read, expected: usize, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    bytes.try_reserve_exact(expected)?;
    source.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_long(most)) } else { Ok(bytes) }
}

/// The error that a file has more bytes than are allowed.
fn too_long(most: u64) -> io::Error {
    let message = format!("it has more than {most} bytes, which are allowed");
    io::Error::new(io::ErrorKind::FileTooLarge, message)
}

/// The text that a user names as the path of a file, or as `-` for standard input. It need not be
/// a regular file: a shell's `<(…)` is a pipe.
///
/// # Errors
/// If it is a folder, has more than `most` bytes, cannot be read, or is not UTF-8.
pub fn read_stream_text(path: &Path, most: u64) -> Result<String, Error> {
    let bytes = if path.as_os_str() == "-" {
        read_bounded(io::stdin().lock(), 0, most)
    } else {
        // The system opens a folder, and refuses to read it.
        fs::File::open(path).and_then(|file| read_bounded(file, 0, most))
    };
    bytes.and_then(text).map_err(|e| error(path, io_message(&e)))
}

/// The bytes of a file that a user names, which may be a symbolic link.
///
/// # Errors
/// If it is not a regular file, has more than `most` bytes, or cannot be read.
pub fn read_named(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read(path, most, SymbolicLinks::Followed)
}

/// The text of a file that a user names, which may be a symbolic link.
///
/// # Errors
/// If it is not a regular file, has more than `most` bytes, cannot be read, or is not UTF-8.
pub fn read_text(path: &Path, most: u64) -> Result<String, Error> {
    read_named(path, most).and_then(text).map_err(|e| error(path, io_message(&e)))
}

/// The bytes of a file of results or of reports.
///
/// # Errors
/// If it is a symbolic link or no regular file, has more than `most` bytes, or cannot be read.
pub fn read_regular(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    read(path, most, SymbolicLinks::Refused)
}

/// The text of a file of results or of reports.
///
/// # Errors
/// As for [`read_regular`] with [`MOST_READ`], or if it is not UTF-8.
pub fn read_regular_text(path: &Path) -> io::Result<String> {
    read_regular(path, MOST_READ).and_then(text)
}

/// Opens a file of results or of reports in the way that `options` say, except for their flags of the system, which are
/// replaced.
///
/// # Errors
/// If it is a symbolic link or no regular file, or cannot be opened. Of the folders on the path nothing is checked:
/// [`refuse_links`] does that.
pub fn open_regular(path: &Path, options: &mut fs::OpenOptions) -> io::Result<fs::File> {
    open(path, options, SymbolicLinks::Refused)
}

/// Bytes as a text.
///
/// # Errors
/// `InvalidData` if they are not UTF-8.
fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8 text"))
}

/// An I/O error of this module in plain words. `InvalidData` means text that is not UTF-8.
pub fn io_message(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "there is no such file".into(),
        io::ErrorKind::InvalidData => "it is not UTF-8 text".into(),
        io::ErrorKind::IsADirectory => "it is a folder; a file is expected".into(),
        _ => error.to_string(),
    }
}

/// The bytes of a file of results, which may have at most `most`. Neither the file nor its folder may be a symbolic
/// link.
///
/// # Errors
/// If one of them is, or the file cannot be read.
pub fn read_plain(path: &Path, most: u64) -> Result<Vec<u8>, Error> {
    let folder = path.parent().unwrap_or(path);
    refuse_links(folder.parent().unwrap_or(folder), folder)?;
    read_regular(path, most).map_err(|e| error(path, e))
}

/// An error if a part of the path from the folder `root` to a place below it is a symbolic link: results and reports
/// are neither read nor written outside of their folder. The folder itself may be a link, which is its user's wish.
/// The path `place` begins with `root`; parts of it that do not exist are no error.
///
/// # Errors
/// The first part that is a symbolic link.
pub fn refuse_links(root: &Path, place: &Path) -> Result<(), Error> {
    let mut part = root.to_owned();
    for name in place.strip_prefix(root).unwrap_or(place) {
        part.push(name);
        if part.symlink_metadata().is_ok_and(|kind| kind.is_symlink()) {
            return Err(error(&part, LINK));
        }
    }
    Ok(())
}

/// Creates the folder at the path `folder`, which begins with `root`, and the folders on the way to it, as far as they
/// do not exist.
///
/// # Errors
/// As for [`refuse_links`], or if it cannot be created.
pub fn create_below(root: &Path, folder: &Path) -> Result<(), Error> {
    refuse_links(root, folder)?;
    fs::create_dir_all(folder).map_err(|e| match e.kind() {
        io::ErrorKind::AlreadyExists | io::ErrorKind::NotADirectory => {
            error(folder, "is not a folder, and none can be created there")
        }
        _ => error(folder, e),
    })
}

/// The prefix of the name of a temporary file.
pub const WRITING: &str = ".writing-";
