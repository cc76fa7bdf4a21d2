package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

// s3PartBytes is how much of an object is sent at a time, and in memory meanwhile, unless it would take more than s3Parts.
const (
	s3PartBytes = 16 << 20
	s3Parts     = 9000 // S3 takes 10,000
)

// roleTimeout bounds the wait for credentials of the instance's role, where there may be nobody to ask.
const roleTimeout = 5 * time.Second

// s3Store keeps objects in a bucket.
type s3Store struct {
	client         *minio.Client
	bucket, prefix string
}

// newS3Store reads s3://bucket/prefix?endpoint=...&region=... Credentials come from the environment (AWS_ACCESS_KEY_ID,
// AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN), the shared credentials file of AWS, or the instance's role.
func newS3Store(u *url.URL) (Store, error) {
	s := &s3Store{bucket: u.Host, prefix: strings.Trim(path.Clean("/"+u.Path), "/")}
	if s.bucket == "" {
		return nil, errors.New("archive: the s3:// URL names no bucket: want s3://bucket/prefix")
	}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return nil, fmt.Errorf("archive: parameters of the s3:// URL: %w", err)
	}
	for name, values := range q {
		if (name != "endpoint" && name != "region") || len(values) != 1 {
			return nil, fmt.Errorf("archive: parameter %q of the s3:// URL: there are endpoint and region, once each", name)
		}
	}
	host, secure := "s3.amazonaws.com", true
	if e := q.Get("endpoint"); e != "" {
		host = e
		if scheme, rest, ok := strings.Cut(e, "://"); ok {
			if scheme != "http" && scheme != "https" {
				return nil, fmt.Errorf("archive: endpoint %q: want http:// or https://", e)
			}
			host, secure = strings.TrimSuffix(rest, "/"), scheme == "https"
		}
	}
	s.client, err = minio.New(host, &minio.Options{
		Secure: secure, Region: q.Get("region"), MaxRetries: 3,
		Creds: credentials.NewChainCredentials([]credentials.Provider{
			&credentials.EnvAWS{}, &credentials.FileAWSCredentials{}, &credentials.IAM{Client: &http.Client{Timeout: roleTimeout}},
		}),
	})
	if err != nil {
		return nil, fmt.Errorf("archive: endpoint %q: %w", host, err)
	}
	return s, nil
}

func (s *s3Store) String() string { return "s3:/" + path.Join("/", s.bucket, s.prefix) }

func (s *s3Store) key(name string) string { return path.Join(s.prefix, name) }

// failed adds what was being done, and makes a missing object an fs.ErrNotExist.
func (s *s3Store) failed(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if code := minio.ToErrorResponse(err).Code; code == "NoSuchKey" || code == "NotFound" {
		err = fs.ErrNotExist
	}
	return fmt.Errorf("archive: %s %s/%s: %w", op, s, name, err)
}

// Put sends the object, each part with an MD5 that the server verifies. (CRC32C in trailers, which the library has too, is
// refused by some servers.) S3 shows an object when it is whole.
func (s *s3Store) Put(ctx context.Context, name string, src io.ReaderAt, size int64) error {
	part := uint64(max(s3PartBytes, (size/s3Parts+s3PartBytes)/s3PartBytes*s3PartBytes))
	_, err := s.client.PutObject(ctx, s.bucket, s.key(name), io.NewSectionReader(src, 0, size), size, minio.PutObjectOptions{
		ContentType: "application/octet-stream", PartSize: part, NumThreads: 1, SendContentMd5: true,
	})
	return s.failed("writing", name, err)
}

// s3Reader is an open object; its errors name it.
type s3Reader struct {
	*minio.Object
	s    *s3Store
	name string
}

// Read reads on.
func (r s3Reader) Read(p []byte) (int, error) {
	n, err := r.Object.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = r.s.failed("reading", r.name, err)
	}
	return n, err
}

func (s *s3Store) Get(ctx context.Context, name string, off, size int64) (io.ReadCloser, error) {
	var o minio.GetObjectOptions
	if size >= 0 {
		if err := o.SetRange(off, off+size-1); err != nil {
			return nil, s.failed("reading", name, err)
		}
	}
	obj, err := s.client.GetObject(ctx, s.bucket, s.key(name), o)
	if err != nil {
		return nil, s.failed("reading", name, err)
	}
	return s3Reader{obj, s, name}, nil
}

func (s *s3Store) List(ctx context.Context, prefix string, each func(string, int64)) error {
	root := ""
	if s.prefix != "" {
		root = s.prefix + "/"
	}
	for o := range s.client.ListObjects(ctx, s.bucket, minio.ListObjectsOptions{Prefix: root + prefix, Recursive: true}) {
		if o.Err != nil {
			return s.failed("listing", prefix, o.Err)
		}
		each(strings.TrimPrefix(o.Key, root), o.Size)
	}
	return nil
}

func (s *s3Store) Delete(ctx context.Context, name string) error {
	err := s.failed("deleting", name, s.client.RemoveObject(ctx, s.bucket, s.key(name), minio.RemoveObjectOptions{}))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
