// Package faultfs puts faults into a file system, for tests: an Injector is asked before every
// operation and may make it fail; the disk can be filled and emptied; operations are counted.
//
//	f := faultfs.New(vfs.NewMem())
//	f.Inject(faultfs.OnPath("shard-00", faultfs.FailNth(faultfs.OpSync, 3, syscall.EIO)))
//	f.Inject(faultfs.FailNth(faultfs.OpWriteAt, 1, faultfs.Short(syscall.EIO)))
//	f.SetFull(true)
//
// An injector is called without locks held, so it may also use the file system below, for example
// to take a crashfs.CrashClone right before the nth write.
package faultfs
